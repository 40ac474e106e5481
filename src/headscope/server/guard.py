"""Who may ask, and how much: this machine's own browser, with the token of the address, in requests of a sane size."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

HOSTS = ("127.0.0.1", "localhost")
HEADER = "x-headscope-token"


class Guard:
    """Stands before an application. A page of another site can neither guess the token nor, by a name that it made
    point to this machine, pass for it: Host and Origin must name this machine."""

    def __init__(self, application: Application, token: str, most_bytes: int, headers: dict[str, str]) -> None:
        self._application = application
        self._token = token.encode()
        self._most = most_bytes
        self._headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        if scope["type"] != "http":  # Nothing else is spoken here.
            return

        async def answer(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *self._headers]
            await send(message)

        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refused(scope, headers)
        if refused is not None:
            await _refuse(answer, *refused)
            return
        body = await self._body(receive)
        if body is None:
            await _refuse(answer, 413, f"The request is too large: {self._most:,} bytes are the most.")
            return
        await self._application(scope, _once(body), answer)

    def _refused(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        if not _is_here(headers.get("host", "")):
            return 403, "This server answers to 127.0.0.1 and localhost alone."
        origin = headers.get("origin")
        if origin is not None and urlsplit(f"//{headers['host']}").netloc != _netloc(origin):
            return 403, "A page of another site may not ask this server."
        given = headers.get(HEADER) or parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self._token):
            return 403, "The token is missing or wrong; open the address that headscope explore printed."
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._most:
            return 413, f"The request is too large: {self._most:,} bytes are the most."
        return None

    async def _body(self, receive: Receive) -> bytes | None:
        """All of it; None where it is larger than what is taken, whatever its header says."""
        whole = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return bytes(whole)
            whole += message.get("body", b"")
            if len(whole) > self._most:
                return None
            if not message.get("more_body"):
                return bytes(whole)


def _is_here(host: str) -> bool:
    try:
        return urlsplit(f"//{host}").hostname in HOSTS
    except ValueError:
        return False


def _netloc(origin: str) -> str | None:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    return parts.netloc if parts.scheme == "http" else None


def _once(body: bytes) -> Receive:
    waiting: list[MutableMapping[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> MutableMapping[str, Any]:
        return waiting.pop() if waiting else {"type": "http.disconnect"}

    return receive


async def _refuse(send: Send, status: int, problem: str) -> None:
    content = json.dumps({"problem": problem}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
