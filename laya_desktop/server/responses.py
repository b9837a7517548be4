"""The one way in which JSON leaves the server."""

from collections.abc import Mapping

import msgspec
from starlette.responses import Response
from starlette.types import Scope

from laya_desktop.server.errors import ApiError


def json_response(payload: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A whole response with a JSON body."""
    return Response(msgspec.json.encode(payload), status, headers, media_type="application/json")


def error_response(scope: Scope, error: ApiError) -> Response:
    """`error` as the answer to the request of `scope`."""
    headers = dict(error.headers)
    if any(name == b"expect" for name, _ in scope["headers"]):
        # The client holds its body back until asked; what it sends next would be taken for the body.
        headers["connection"] = "close"
    return json_response(error.payload(), error.status, headers)


def encode_headers(fields: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields.items()]
