"""A scripted backend for tests: it answers, waits, fails or dies as its model path says.

The path is JSON: ``{"reply": "one two", "die": "SIGKILL", "die_after": 2}``. One word is one token.
"""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from laya_desktop.backends.base import StreamEvent
from laya_desktop.core.errors import ErrorCode, ErrorInfo, LayaError
from laya_desktop.core.events import Accepted, Cancelled, Delta, Failed, Finished, FinishReason, Prefill
from laya_desktop.core.types import LoadedInfo, LoadSpec, Message, Sampling, Timings, Usage


class FakeScript(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to do. `die` is a signal's name or ``exit``; it happens after `die_after` tokens of a stream,
    or in loading if that is None. `endless` repeats the reply until cancelled; a step takes `pace_s`
    seconds."""

    reply: str = "a b c"
    prefill: int = 1
    load_error: str | None = None
    load_hangs: bool = False
    die: str | None = None
    die_after: int | None = None
    endless: bool = False
    pace_s: float = 0.0


@dataclass
class _Stream:
    prompt_tokens: int
    words: list[str]
    limit: int | None
    prefilled: int = 0
    sent: int = 0
    cancelled: bool = False
    error: ErrorInfo | None = None
    events: list[StreamEvent] = field(default_factory=list)


class FakeBackend:
    """See the module. A prompt's tokens are its words."""

    def __init__(self) -> None:
        self._script = FakeScript()
        self._spec: LoadSpec | None = None
        self._streams: dict[str, _Stream] = {}

    @property
    def has_work(self) -> bool:
        return bool(self._streams)

    def load(self, spec: LoadSpec, on_progress: Callable[[float], None]) -> LoadedInfo:
        self._spec = spec
        self._script = msgspec.convert(json.loads(spec.path), FakeScript)
        on_progress(0.5)
        if self._script.load_hangs:
            threading.Event().wait()
        if self._script.load_error:
            raise LayaError(ErrorCode.MODEL_LOAD_FAILED, self._script.load_error)
        if self._script.die and self._script.die_after is None:
            _die(self._script.die)
        return LoadedInfo(
            context_tokens=spec.context_tokens, max_streams=spec.max_streams, backend_version="fake"
        )

    def submit(self, request_id: str, messages: Sequence[Message], sampling: Sampling) -> None:
        assert self._spec is not None
        tokens = sum(len(message.content.split()) for message in messages)
        stream = _Stream(tokens, self._script.reply.split(), sampling.max_tokens)
        if tokens >= self._spec.context_tokens:
            stream.error = ErrorInfo(
                code=ErrorCode.CONTEXT_LENGTH_EXCEEDED,
                message=f"The prompt has {tokens} tokens, the context {self._spec.context_tokens}.",
            )
        self._streams[request_id] = stream

    def cancel(self, request_id: str) -> None:
        if stream := self._streams.get(request_id):
            stream.cancelled = True

    def step(self) -> list[StreamEvent]:
        assert self._spec is not None
        time.sleep(self._script.pace_s)
        events: list[StreamEvent] = []
        for request_id, stream in list(self._streams.items())[: self._spec.max_streams]:
            for event in self._advance(stream):
                events.append(StreamEvent(request_id, event))
                if isinstance(event, Finished | Failed | Cancelled):
                    del self._streams[request_id]
        return events

    def _advance(self, stream: _Stream) -> list[Accepted | Prefill | Delta | Finished | Failed | Cancelled]:
        assert self._spec is not None
        if stream.cancelled:
            return [Cancelled()]
        if stream.error:
            return [Failed(error=stream.error)]
        if stream.prefilled < self._script.prefill:
            stream.prefilled += 1
            progress = Prefill(done=stream.prefilled, total=self._script.prefill)
            if stream.prefilled > 1:
                return [progress]
            accepted = Accepted(
                prompt_tokens=stream.prompt_tokens,
                reused_tokens=0,
                context_tokens=self._spec.context_tokens,
            )
            return [accepted, progress]
        if self._script.die and stream.sent == self._script.die_after:
            _die(self._script.die)
        if reason := self._end(stream):
            usage = Usage(prompt_tokens=stream.prompt_tokens, completion_tokens=stream.sent)
            return [Finished(reason=reason, usage=usage, timings=Timings(prefill_ms=1.0, decode_ms=1.0))]
        word = stream.words[stream.sent % len(stream.words)]
        stream.sent += 1
        return [Delta(text=word if stream.sent == 1 else f" {word}")]

    def _end(self, stream: _Stream) -> FinishReason | None:
        if stream.limit is not None and stream.sent >= stream.limit:
            return FinishReason.LENGTH
        if not self._script.endless and stream.sent >= len(stream.words):
            return FinishReason.STOP
        return None

    def use_threads(self, count: int) -> None:
        """Nothing to share out: it computes nothing."""

    def close(self) -> None:
        self._streams.clear()


def _die(how: str) -> None:
    if how == "exit":
        os._exit(1)
    os.kill(os.getpid(), signal.Signals[how])
    threading.Event().wait()
