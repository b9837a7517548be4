"""What was measured and decided: the speed of every model, and the latest decisions.

Speeds outlive the app in a small file; decisions stay in memory. Everything runs on the engine's loop.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from laya_desktop.config.files import replace_file
from laya_desktop.core.types import Decision, Timings, Usage

if TYPE_CHECKING:
    from laya_desktop.engine.routing.features import Features

log = logging.getLogger(__name__)

DECISIONS = 1000
_SAVE_INTERVAL_S = 30.0
_MODELS = 500
_WEIGHT = 0.25
_LEAST_PROMPT_TOKENS = 16
_LEAST_TOKENS = 4

# A slow desktop processor, until this machine has been measured: all scale with the size of a model's files.
_DECODE_BYTES_PER_S = 12e9
_PREFILL_BYTES_PER_S = 80e9
_LOAD_BYTES_PER_S = 0.5e9
_LOAD_S = 0.5
_COMPLETION_TOKENS = 200.0
_UNKNOWN_SIZE = 4 << 30

_NOTHING = (0, None)


class Speeds(msgspec.Struct, frozen=True, kw_only=True):
    """Of one model whose files have `size_bytes`. `prefill` and `decode` in tokens per second of one stream,
    `load_s` seconds until a cold model is warm, `completion` tokens of an answer. None was not measured."""

    size_bytes: int
    prefill: float | None = None
    decode: float | None = None
    load_s: float | None = None
    completion: float | None = None


class Expected(NamedTuple):
    """The same with a value for everything."""

    prefill: float
    decode: float
    load_s: float
    completion: float


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision with what it was made from. `at` is seconds since the epoch."""

    at: float
    request_id: str
    features: "Features"
    decision: Decision


class History:
    """Owned by the engine thread."""

    def __init__(self) -> None:
        self.decisions: deque[Decided] = deque(maxlen=DECISIONS)
        self.is_dirty = False
        self._speeds: dict[str, Speeds] = {}
        self._expected: dict[str, tuple[int, Expected]] = {}
        self._turns: dict[str, int] = {}
        self._turn = 0

    # Speeds

    def observe(self, model: str, size_bytes: int, usage: Usage, timings: Timings) -> None:
        """Learn from a finished answer. Few tokens say nothing about a speed."""
        known = self._of(model, size_bytes)
        prefill, decode = known.prefill, known.decode
        computed = usage.prompt_tokens - usage.reused_tokens
        if computed >= _LEAST_PROMPT_TOKENS and timings.prefill_ms > 0:
            prefill = _mean(prefill, computed / timings.prefill_ms * 1000)
        if usage.completion_tokens > _LEAST_TOKENS and timings.decode_ms > 0:
            decode = _mean(decode, (usage.completion_tokens - 1) / timings.decode_ms * 1000)
        completion = _mean(known.completion, usage.completion_tokens)
        self._learn(
            model, msgspec.structs.replace(known, prefill=prefill, decode=decode, completion=completion)
        )

    def loaded(self, model: str, size_bytes: int, seconds: float) -> None:
        """Learn how long loading took."""
        known = self._of(model, size_bytes)
        self._learn(model, msgspec.structs.replace(known, load_s=_mean(known.load_s, seconds)))

    def expected(self, model: str, size_bytes: int) -> Expected:
        """What to expect of a model; where it was not measured, what its size suggests beside the models
        that were measured on this machine."""
        size, found = self._expected.get(model, _NOTHING)
        if found is None or size != size_bytes:
            found = self._estimate(model, size_bytes)
            self._expected[model] = size_bytes, found
        return found

    def _estimate(self, model: str, size_bytes: int) -> Expected:
        known = self._of(model, size_bytes)
        size = size_bytes or _UNKNOWN_SIZE
        own = [speeds for speeds in self._speeds.values() if speeds.size_bytes]
        decode = _average(s.decode * s.size_bytes for s in own if s.decode) or _DECODE_BYTES_PER_S
        prefill = _average(s.prefill * s.size_bytes for s in own if s.prefill) or _PREFILL_BYTES_PER_S
        return Expected(
            prefill=known.prefill or prefill / size,
            decode=known.decode or decode / size,
            load_s=known.load_s or _LOAD_S + size / _LOAD_BYTES_PER_S,
            completion=known.completion or _COMPLETION_TOKENS,
        )

    def _of(self, model: str, size_bytes: int) -> Speeds:
        """What is known of a model; nothing if its files are others now."""
        known = self._speeds.get(model)
        return known if known and known.size_bytes == size_bytes else Speeds(size_bytes=size_bytes)

    def _learn(self, model: str, speeds: Speeds) -> None:
        self._speeds.pop(model, None)
        self._speeds[model] = speeds
        if len(self._speeds) > _MODELS:
            del self._speeds[next(iter(self._speeds))]
        self._expected.clear()
        self.is_dirty = True

    # Turns

    def took_turn(self, model: str) -> None:
        """A model was chosen."""
        self._turn += 1
        self._turns[model] = self._turn

    def last_turn(self, model: str) -> int:
        """A number that is larger the later a model was chosen; 0 for never."""
        return self._turns.get(model, 0)

    # What outlives the app

    def encode(self) -> bytes:
        """What is to be saved. From now on it counts as saved."""
        self.is_dirty = False
        return msgspec.json.encode(self._speeds)

    def decode(self, data: bytes) -> None:
        """Take over what was saved. Speeds that make no sense are left out; raises msgspec.MsgspecError if it
        is not what `encode` makes."""
        found = msgspec.json.decode(data, type=dict[str, Speeds])
        self._speeds = {name: speeds for name, speeds in found.items() if _is_sane(speeds)}
        self._expected.clear()


class HistoryFile:
    """A history with its file."""

    def __init__(self, file: Path) -> None:
        self.history = History()
        self._file = file

    def load(self) -> None:
        """Read the file; without a usable one the speeds are measured anew. Blocks."""
        try:
            self.history.decode(self._file.read_bytes())
        except FileNotFoundError:
            pass
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("%s is ignored: %s", self._file, error)

    async def keep(self) -> None:
        """Save now and then, until cancelled."""
        while True:
            await asyncio.sleep(_SAVE_INTERVAL_S)
            await self.save()

    async def save(self) -> None:
        """Replace the file if there is something new; written in a pool thread."""
        if not self.history.is_dirty:
            return
        try:
            await asyncio.to_thread(replace_file, self._file, self.history.encode())
        except OSError as error:
            log.warning("%s cannot be written: %s", self._file, error)


def _mean(before: float | None, value: float) -> float:
    """Exponentially weighted: the last ten or so values count."""
    return value if before is None else before + _WEIGHT * (value - before)


def _average(values: Iterable[float]) -> float | None:
    found = list(values)
    return sum(found) / len(found) if found else None


def _is_sane(speeds: Speeds) -> bool:
    numbers = (speeds.prefill, speeds.decode, speeds.load_s, speeds.completion)
    return speeds.size_bytes >= 0 and all(number is None or 0 < number < 1e9 for number in numbers)
