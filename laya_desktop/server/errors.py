"""Errors as clients see them: OpenAI's form with an HTTP status, for every way a request can fail."""

import math

from laya_desktop.core.errors import ErrorCode, ErrorInfo

_STATUS = {
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.MODEL_NOT_FOUND: 404,
    ErrorCode.CONTEXT_LENGTH_EXCEEDED: 400,
    ErrorCode.CHAT_TEMPLATE_ERROR: 400,
    ErrorCode.QUEUE_FULL: 503,
    ErrorCode.QUEUE_TIMEOUT: 503,
    ErrorCode.INSUFFICIENT_MEMORY: 503,
    ErrorCode.MODEL_UNLOADED: 503,
    ErrorCode.ENGINE_STOPPED: 503,
}
"""Everything else is 500."""

_BUSY = (ErrorCode.QUEUE_FULL, ErrorCode.QUEUE_TIMEOUT, ErrorCode.INSUFFICIENT_MEMORY)


class ApiError(Exception):
    """Ends a request with `status` and a body in OpenAI's error form. Its texts may quote what is not UTF-8,
    such as the name of a file; a question mark then stands for it."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str = ErrorCode.INVALID_REQUEST.value,
        param: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = _encodable(message)
        self.code = _encodable(code)
        self.param = None if param is None else _encodable(param)
        self.headers = headers or {}

    @classmethod
    def of(cls, info: ErrorInfo) -> "ApiError":
        """What the engine reported, as an answer. Busy answers say in whole seconds when to come back."""
        headers = {}
        if info.code in _BUSY or info.retry_after_s is not None:
            headers["retry-after"] = str(max(1, math.ceil(info.retry_after_s or 1)))
        status = _STATUS.get(info.code, 500)
        return cls(status, info.sentence(), code=info.code.value, param=info.param, headers=headers)

    def payload(self) -> dict[str, object]:
        """The JSON body, also used for an error in the middle of a stream."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {
            "error": {"message": self.message, "type": kind, "param": self.param, "code": self.code},
        }


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def stopped() -> ApiError:
    """Somebody pressed Stop in the app. 499, because clients repeat a 5xx by themselves."""
    return ApiError(499, "The request was stopped in the app.", code="cancelled")
