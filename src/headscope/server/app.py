"""The web application: one page, and the few questions that it asks."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from headscope.errors import HeadscopeError
from headscope.server.explorer import LONGEST, MOST_CHARACTERS, Explorer
from headscope.server.guard import Guard
from headscope.show.viewer.page import page, policy

MOST_BYTES = 8 * MOST_CHARACTERS
"""Of a request: a character may take several, and more where JSON escapes it."""
HEADERS = {
    "Content-Security-Policy": policy(server=True) + "; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Look(BaseModel):
    """A window of a text, to be looked at."""

    text: Annotated[str, Field(max_length=MOST_CHARACTERS)]
    model: Annotated[str, Field(max_length=1000)]
    length: Annotated[int, Field(ge=3, le=LONGEST)] = 128
    window: Annotated[int, Field(ge=0, le=MOST_CHARACTERS)] = 0


def application(explorer: Explorer, token: str) -> Guard:
    """Functions that are not asynchronous run in threads of their own: one that is slow does not hold up the others."""
    app = FastAPI(title="headscope explore", docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")

    @app.get("/", response_class=HTMLResponse)
    def home() -> str:
        return page("headscope explore", "headscope explore", {"server": explorer.about})

    @app.post("/api/look")
    def look(asked: Look) -> Response:
        return _json(explorer.look(asked.text, asked.model, asked.length, asked.window))

    @app.get("/api/study")
    def study() -> Response:
        return _json(explorer.study)

    @app.get("/api/example")
    def example() -> Response:
        return _json(explorer.example)

    @app.get("/api/sums")
    def sums() -> Response:
        return _json(explorer.sums)

    @app.exception_handler(HeadscopeError)
    def refused(request: Request, problem: HeadscopeError) -> JSONResponse:
        return JSONResponse({"problem": problem.typed}, 400)

    @app.exception_handler(RequestValidationError)
    def wrong(request: Request, problem: RequestValidationError) -> JSONResponse:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body") or "The request"
        if first["type"] == "string_too_long" and where == "text":
            return JSONResponse({"problem": f"The text is too long: {MOST_CHARACTERS:,} characters are the most."}, 413)
        return JSONResponse({"problem": f"{where}: {first['msg']}."}, 422)

    @app.exception_handler(HTTPException)
    def absent(request: Request, problem: HTTPException) -> JSONResponse:
        return JSONResponse({"problem": f"{problem.detail}."}, problem.status_code)

    return Guard(app, token, MOST_BYTES, HEADERS)


def _json(content: str) -> Response:
    return Response(content.encode("utf-8", "replace"), media_type="application/json")
