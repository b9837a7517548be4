"""The one error type that crosses layers, and its serialisable form.

Everything a user may see is a `LayaError`: a code that programs test, a sentence that says what happened
and a hint that says what to do next.
"""

from enum import StrEnum

import msgspec


class ErrorCode(StrEnum):
    """Stable codes. The HTTP server maps them to status codes; the window to inline messages."""

    INVALID_REQUEST = "invalid_request"
    MODEL_NOT_FOUND = "model_not_found"
    MODEL_FILE_MISSING = "model_file_missing"
    MODEL_LOAD_FAILED = "model_load_failed"
    BACKEND_MISSING = "backend_missing"
    CHAT_TEMPLATE_ERROR = "chat_template_error"
    CONTEXT_LENGTH_EXCEEDED = "context_length_exceeded"
    QUEUE_FULL = "queue_full"
    QUEUE_TIMEOUT = "queue_timeout"
    INSUFFICIENT_MEMORY = "insufficient_memory"
    WORKER_CRASHED = "worker_crashed"
    MODEL_UNLOADED = "model_unloaded"
    ENGINE_STOPPED = "engine_stopped"
    INTERNAL = "internal"


class ErrorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An error as data: it travels in events and frames.

    `param` names the offending field as a path (``messages[2].content``); `retry_after_s` is in seconds.
    """

    code: ErrorCode
    message: str
    hint: str = ""
    param: str | None = None
    retry_after_s: float | None = None

    def sentence(self) -> str:
        """Message and hint as one text for people."""
        return f"{self.message} {self.hint}".strip()


class LayaError(Exception):
    """Raised anywhere below the UI and the server; `info` is what they show."""

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        hint: str = "",
        param: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.info = ErrorInfo(code=code, message=message, hint=hint, param=param, retry_after_s=retry_after_s)

    @classmethod
    def of(cls, info: ErrorInfo) -> "LayaError":
        """Raise again what arrived as data."""
        return cls(
            info.code,
            info.message,
            hint=info.hint,
            param=info.param,
            retry_after_s=info.retry_after_s,
        )
