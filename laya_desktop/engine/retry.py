"""When a model that failed may be tried again, so that a broken one is not loaded in a loop."""

import time

from laya_desktop.core.errors import ErrorCode, ErrorInfo, LayaError

_FIRST_WAIT_S = 5.0
_LONGEST_WAIT_S = 300.0

TRY_ANOTHER = {
    ErrorCode.MODEL_LOAD_FAILED,
    ErrorCode.MODEL_FILE_MISSING,
    ErrorCode.BACKEND_MISSING,
    ErrorCode.INSUFFICIENT_MEMORY,
    ErrorCode.WORKER_CRASHED,
    ErrorCode.CHAT_TEMPLATE_ERROR,
    ErrorCode.CONTEXT_LENGTH_EXCEEDED,
}
"""Failures of one model before its first token that another model may not have."""


class Backoff:
    """The first failure may be retried at once; from the second in a row on, the wait doubles from 5 s to
    300 s. Only a finished answer ends the row: a model that loads and then dies has not recovered."""

    def __init__(self) -> None:
        self._failures = 0
        self.retry_at: float | None = None

    def failed(self, now: float) -> None:
        """Count a failure at wall-clock second `now`."""
        self._failures += 1
        if self._failures > 1:
            wait = min(_FIRST_WAIT_S * 2 ** (self._failures - 2), _LONGEST_WAIT_S)
            self.retry_at = now + wait

    def reset(self) -> None:
        self._failures = 0
        self.retry_at = None

    def check(self, name: str, error: ErrorInfo | None) -> None:
        """Raise the last failure again, with the seconds left, while it is too early."""
        remaining = (self.retry_at or 0.0) - time.time()
        if remaining <= 0:
            return
        raise LayaError(
            error.code if error else ErrorCode.MODEL_LOAD_FAILED,
            error.message if error else f"'{name}' failed repeatedly.",
            hint=f"It failed {self._failures} times in a row; next try in {remaining:.0f} s, "
            "or warm it by hand.",
            retry_after_s=remaining,
        )
