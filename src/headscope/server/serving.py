"""The explorer on a port of this machine, until Ctrl-C."""

from __future__ import annotations

import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable

import uvicorn

from headscope.errors import HeadscopeError
from headscope.server.app import application
from headscope.server.explorer import Explorer
from headscope.speaking import option

HERE = "127.0.0.1"


def bound(port: int) -> socket.socket:
    """A socket that no other machine reaches; port 0: any that is free."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HERE, port))
    except (OSError, OverflowError) as problem:
        listening.close()
        reason = getattr(problem, "strerror", None) or problem
        raise HeadscopeError(f"Port {port} can't be had ({reason}); give another {option('port')}, or none.") from None
    return listening


def serve(explorer: Explorer, listening: socket.socket, say: Callable[[str], None], browser: bool) -> None:
    """say: is told the address, once it answers."""
    token = secrets.token_urlsafe(24)
    address = f"http://{HERE}:{listening.getsockname()[1]}/?token={token}"
    settings = uvicorn.Config(
        application(explorer, token),
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        ws="none",
    )
    listening.listen()
    say(address)
    if browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    try:
        uvicorn.Server(settings).run(sockets=[listening])
    except KeyboardInterrupt:  # It has shut down already.
        pass
    finally:
        listening.close()
