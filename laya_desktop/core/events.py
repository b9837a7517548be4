"""Events. Request events go to the one who submitted the request; engine events to every subscriber.

A request's events come in this order: `Routed`, any number of `Queued` and `Loading`, then `Accepted`,
`Prefill`*, `Delta`*, and exactly one terminal event (`Finished`, `Failed` or `Cancelled`) at any point. When
a fallback takes over, which happens before the first `Delta` only, the order begins again with `Routed`.
"""

from enum import StrEnum

import msgspec

from laya_desktop.core.errors import ErrorInfo
from laya_desktop.core.types import Decision, LoadedInfo, ModelInfo, ModelState, Timings, Usage


class FinishReason(StrEnum):
    STOP = "stop"
    LENGTH = "length"


class _Event(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    pass


# Request events


class Routed(_Event, frozen=True, kw_only=True):
    decision: Decision


class Queued(_Event, frozen=True, kw_only=True):
    """Waiting for a slot; `position` 1 is next."""

    position: int


class Loading(_Event, frozen=True, kw_only=True):
    """The model is being loaded; `progress` is 0…1."""

    model: str
    progress: float


class Accepted(_Event, frozen=True, kw_only=True):
    """The prompt fits and generation begins. Comes before the first token, so that a caller can still
    answer with an error until then. `context_tokens` is the limit of this stream."""

    prompt_tokens: int
    reused_tokens: int
    context_tokens: int


class Prefill(_Event, frozen=True, kw_only=True):
    """Prompt tokens computed so far, reused ones included."""

    done: int
    total: int


class Delta(_Event, frozen=True, kw_only=True):
    """New text of choice `index`, made from `tokens` tokens. Never ends inside a character."""

    text: str
    tokens: int = 1
    index: int = 0


class Finished(_Event, frozen=True, kw_only=True):
    reason: FinishReason
    usage: Usage
    timings: Timings


class Failed(_Event, frozen=True, kw_only=True):
    error: ErrorInfo


class Cancelled(_Event, frozen=True, kw_only=True):
    pass


RequestEvent = Routed | Queued | Loading | Accepted | Prefill | Delta | Finished | Failed | Cancelled
WorkerEvent = Accepted | Prefill | Delta | Finished | Failed | Cancelled
"""Those request events that a worker produces."""

TERMINAL = (Finished, Failed, Cancelled)


# Engine events


class ModelStatus(_Event, frozen=True, kw_only=True):
    """A model as the engine sees it now; sent whenever something in it changes.

    `memory_bytes` is measured (None while cold), `progress` 0…1 while loading, `error` while failed or
    when the file is unusable. `retry_at` is wall-clock seconds since the epoch.
    """

    name: str
    backend: str
    path: str
    state: ModelState
    streams: int = 0
    progress: float | None = None
    memory_bytes: int | None = None
    answers: int = 0
    info: ModelInfo | None = None
    loaded: LoadedInfo | None = None
    error: ErrorInfo | None = None
    retry_at: float | None = None


class ModelsChanged(_Event, frozen=True, kw_only=True):
    """The whole list, in config order, after models were added or removed."""

    models: tuple[ModelStatus, ...]


class MemorySample(_Event, frozen=True, kw_only=True):
    """Bytes, at `at` (seconds since the epoch). `limit` is what this process tree may use at most: the
    machine's memory or its cgroup's limit. `used` is all that is in use below the limit, `models` what our
    workers hold, `reserved` what is never promised to a model."""

    at: float
    limit: int
    used: int
    available: int
    reserved: int
    models: dict[str, int]


class QueueChanged(_Event, frozen=True, kw_only=True):
    running: int
    waiting: int


class ConfigApplied(_Event, frozen=True, kw_only=True):
    """A new config took effect; read it from `EngineHandle.config`."""


class ConfigRejected(_Event, frozen=True, kw_only=True):
    """The file on disk is broken; the last good config stays. A sentence per problem, with file and line."""

    problems: tuple[str, ...]


class Notice(_Event, frozen=True, kw_only=True):
    """Something worth a line in the timeline: loaded, unloaded, crashed, fallback."""

    at: float
    kind: str
    text: str
    model: str | None = None


EngineEvent = (
    ModelStatus | ModelsChanged | MemorySample | QueueChanged | ConfigApplied | ConfigRejected | Notice
)
