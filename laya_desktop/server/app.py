"""The HTTP application: routes over an EngineHandle. Every answer, errors too, is JSON or an event stream."""

import time
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from laya_desktop import __version__
from laya_desktop.core.errors import ErrorCode
from laya_desktop.core.types import AUTO_MODEL
from laya_desktop.engine.handle import EngineHandle
from laya_desktop.server.chat import ChatCompletions
from laya_desktop.server.errors import ApiError
from laya_desktop.server.models import resolve, served_names
from laya_desktop.server.openai_api import model_object
from laya_desktop.server.responses import error_response, json_response
from laya_desktop.server.route import RouteDecision, Shortcut
from laya_desktop.server.security import Gate


def build_app(handle: EngineHandle) -> Starlette:
    """The application. It must run on the engine's own loop (`EngineHandle.run`)."""
    created = int(time.time())

    async def health(request: Request) -> Response:
        return json_response({"status": "ok", "app": "laya-desktop", "version": __version__})

    async def models(request: Request) -> Response:
        names = [*served_names(handle), AUTO_MODEL]
        return json_response({"object": "list", "data": [model_object(name, created) for name in names]})

    async def model(request: Request) -> Response:
        return json_response(model_object(resolve(handle, request.path_params["name"]), created))

    decision = RouteDecision(handle)
    app = Starlette(
        routes=[
            Route("/health", health),
            Route("/v1/models", models),
            Route("/v1/models/{name:path}", model),
            Route("/v1/chat/completions", ChatCompletions(handle), methods=["POST"]),
            Route("/v1/route", decision, methods=["POST"]),
        ],
        middleware=[
            Middleware(Gate, handle=handle),
            Middleware(Shortcut, path="/v1/route", endpoint=decision),
        ],
        exception_handlers={HTTPException: _http_error, ApiError: _api_error, Exception: _unexpected},
    )
    app.router.redirect_slashes = False
    return app


async def _http_error(request: Request, error: Exception) -> Response:
    """Unknown routes and wrong verbs."""
    assert isinstance(error, HTTPException)
    message = f"{HTTPStatus(error.status_code).phrase}: {request.method} {request.url.path[:200]}"
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "invalid_request")
    answer = ApiError(error.status_code, message, code=code, headers=dict(error.headers or {}))
    return error_response(request.scope, answer)


async def _api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return error_response(request.scope, error)


async def _unexpected(request: Request, error: Exception) -> Response:
    """A defect of ours: the log has the traceback, the client a sentence. uvicorn then closes the connection,
    which a client that keeps it must know."""
    answer = ApiError(
        500,
        "Something went wrong in Laya Desktop. Its log says more.",
        code=ErrorCode.INTERNAL.value,
        headers={"connection": "close"},
    )
    return error_response(request.scope, answer)
