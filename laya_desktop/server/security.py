"""Who may talk to the server. Pure checks over one request's headers, applied before routing.

A web page that the user opens can reach 127.0.0.1 from the browser: by its own requests (Origin, content
type), or by pointing its own name at 127.0.0.1 (Host). Other computers need a key.
"""

import functools
import hmac
import ipaddress
import re
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from laya_desktop.config.schema import ServerConfig
from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.engine.handle import EngineHandle
from laya_desktop.server.errors import ApiError
from laya_desktop.server.responses import error_response

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^\s:/@\[\]?#]+)(?::(?P<port>\d{1,5}))?", re.IGNORECASE)
_READING = ("GET", "HEAD")
_OPEN_PATHS = ("/health",)


class Gate:
    """ASGI middleware that refuses what `refusal` objects to. Reads the live config for every request."""

    def __init__(self, app: ASGIApp, handle: EngineHandle) -> None:
        self._app = app
        self._handle = handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (error := refusal(scope, self._handle.config.server)):
            await error_response(scope, error)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def check_exposure(server: ServerConfig, host: str) -> None:
    """Raise LayaError if listening on `host` would let other computers in against the settings."""
    if is_loopback(host):
        return
    if not server.allow_network:
        raise LayaError(
            ErrorCode.INVALID_REQUEST,
            f"The server may not listen on {host}: that address can be reached from other computers.",
            hint="Use 127.0.0.1, or set server.allow_network to true.",
        )
    if not server.api_keys:
        raise LayaError(
            ErrorCode.INVALID_REQUEST,
            f"The server may not listen on {host} without a key.",
            hint="Add one to server.api_keys.",
        )


@functools.lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Whether `host` (a name or an address, without brackets) means this computer only."""
    name = host.lower().removesuffix(".")
    if name == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def refusal(scope: Scope, server: ServerConfig) -> ApiError | None:
    """Why this request is not let in; None if it is."""
    headers: dict[str, list[bytes]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1"), []).append(value)
    return (
        _wrong_host(scope, headers, server)
        or _foreign_origin(scope, headers)
        or _missing_key(scope, headers, server)
        or _wrong_media_type(scope, headers)
    )


def _wrong_host(scope: Scope, headers: dict[str, list[bytes]], server: ServerConfig) -> ApiError | None:
    address, port = scope["server"]
    values = headers.get("host", [])
    if not is_loopback(address):
        if not (server.allow_network and server.api_keys):
            return ApiError(403, "Connections from other computers are not allowed.", code="forbidden")
    elif not values and scope["http_version"] == "1.0":
        return None  # browsers always name the host
    match = _HOST.fullmatch(values[0].decode("latin-1")) if len(values) == 1 else None
    if match is None:
        return ApiError(403, "The request must name exactly one host.", code="forbidden")
    # Under other names than these, only a page that rebound its own name reaches a loopback address. Over the
    # network the key protects, and this computer has names that we do not know.
    name, named_port = match["name"].strip("[]"), match["port"]
    if is_loopback(address) and not (is_loopback(name) and named_port in (None, str(port))):
        return ApiError(
            403,
            f"This server answers to localhost:{port} and 127.0.0.1:{port} only, not to other host names.",
            code="forbidden",
        )
    return None


def _foreign_origin(scope: Scope, headers: dict[str, list[bytes]]) -> ApiError | None:
    origins = headers.get("origin", [])
    if not origins or scope["method"] in _READING:
        return None
    hosts = [value.lower() for value in headers.get("host", [])]
    if all(_authority(origin) in hosts for origin in origins):
        return None
    return ApiError(403, "Web pages of other sites may not use this server.", code="forbidden")


def _authority(origin: bytes) -> bytes:
    try:
        return urlsplit(origin.lower()).netloc
    except ValueError:
        return b""


def _missing_key(scope: Scope, headers: dict[str, list[bytes]], server: ServerConfig) -> ApiError | None:
    if not server.api_keys or scope["path"] in _OPEN_PATHS:
        return None
    offered = [value.strip() for value in headers.get("x-api-key", [])]
    for value in headers.get("authorization", []):
        scheme, _, token = value.strip().partition(b" ")
        if scheme.lower() == b"bearer":
            offered.append(token.strip())
    # Every pair is compared, so that the time taken says nothing about which one nearly matched.
    matches = [hmac.compare_digest(key.encode(), token) for key in server.api_keys for token in offered]
    if any(matches):
        return None
    return ApiError(
        401,
        "This server needs an API key. Send it as 'Authorization: Bearer KEY' or 'x-api-key: KEY'.",
        code="invalid_api_key",
        headers={"www-authenticate": "Bearer"},
    )


def _wrong_media_type(scope: Scope, headers: dict[str, list[bytes]]) -> ApiError | None:
    if scope["method"] != "POST":
        return None
    encodings = [value.strip().lower() for value in headers.get("content-encoding", [])]
    if any(encoding != b"identity" for encoding in encodings):
        return ApiError(415, "Compressed bodies are not supported.", code="unsupported_media_type")
    types = [value.partition(b";")[0].strip().lower() for value in headers.get("content-type", [])]
    # A page may send text/plain and forms anywhere without asking; JSON it may not.
    if types != [b"application/json"]:
        return ApiError(415, "The content type must be application/json.", code="unsupported_media_type")
    return None
