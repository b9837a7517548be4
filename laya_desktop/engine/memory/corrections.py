"""What was measured on this machine corrects the next estimate.

What is uncertain about an estimate is the worker itself (`base`): interpreter and libraries, and whatever
nobody has thought of. So that is what is learnt, per model and settings; weights, KV cache and buffers are
known and stay. Runs on the engine's loop.
"""

import asyncio
import hashlib
import logging
from pathlib import Path

import msgspec

from laya_desktop.config.files import replace_file
from laya_desktop.core.types import KvType, LoadSpec, MemoryEstimate
from laya_desktop.engine.memory.shape import ModelShape

log = logging.getLogger(__name__)

_MODELS = 200
_SETTINGS = 8
_KEPT = 5
_LEAST_BASE = 0.5
"""Of the estimated base: memory that two workers share is counted half, and pages may be swapped out."""
_MOST_BYTES = 1 << 42


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a model was loaded with."""

    context_tokens: int
    streams: int
    kv_type: KvType = "f16"
    gpu_layers: int = 0

    @classmethod
    def of(cls, spec: LoadSpec) -> "Settings":
        return cls(
            context_tokens=spec.context_tokens,
            streams=spec.max_streams,
            kv_type=spec.kv_type,
            gpu_layers=spec.gpu_layers,
        )


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes beyond what is certain, of the latest loads with these settings, the last one last: of the worker
    (`base`), and of graphics memory (`gpu`, 0 where it was not measured)."""

    settings: Settings
    base: tuple[int, ...]
    gpu: tuple[int, ...]


def fingerprint(shape: ModelShape) -> str:
    """The same for files that need the same memory."""
    return hashlib.sha256(repr(shape).encode()).hexdigest()[:16]


class Corrections:
    """Measurements by model. Owned by the engine thread."""

    def __init__(self) -> None:
        self.is_dirty = False
        self._models: dict[str, tuple[Measured, ...]] = {}

    def learn(
        self, model: str, settings: Settings, need: MemoryEstimate, peak: int, gpu_peak: int = 0
    ) -> None:
        """Take over the largest proportional set size of one load, in bytes, and of graphics memory if it was
        measured. `model` is its fingerprint, `need` the estimate without correction. A peak below what is
        certain says that memory was shared or swapped out, and nothing else: it is passed over."""
        base = peak - (need.ram - need.base)
        if not 0 < base < _MOST_BYTES:
            return
        gpu = max(0, gpu_peak - need.gpu_weights - need.gpu_kv)
        known = self._models.pop(model, ())
        before = next((found for found in known if found.settings == settings), None)
        bases, gpus = (before.base, before.gpu) if before else ((), ())
        measured = Measured(
            settings=settings, base=(*bases, base)[-_KEPT:], gpu=(*gpus, min(gpu, _MOST_BYTES))[-_KEPT:]
        )
        others = tuple(found for found in known if found is not before)
        self._models[model] = (*others, measured)[-_SETTINGS:]
        if len(self._models) > _MODELS:
            del self._models[next(iter(self._models))]
        self.is_dirty = True

    def correct(self, model: str, settings: Settings, need: MemoryEstimate) -> MemoryEstimate:
        """The estimate with the largest of the latest measurements: with these settings, else with others.
        Where the metadata did not say enough, it only grows."""
        known = self._models.get(model, ())
        found = [measured for measured in known if measured.settings == settings] or list(known)
        if not found:
            return need
        base = max(max(measured.base) for measured in found)
        least = int(need.base * _LEAST_BASE) if need.exact else need.base
        gpu = max((max(one.gpu) for one in found if one.settings == settings), default=0)
        return msgspec.structs.replace(
            need, base=max(base, least), gpu_compute=max(need.gpu_compute, gpu) if need.vram else 0
        )

    def encode(self) -> bytes:
        """What is to be saved. From now on it counts as saved."""
        self.is_dirty = False
        return msgspec.json.encode(self._models)

    def decode(self, data: bytes) -> None:
        """Take over what was saved. Raises msgspec.MsgspecError if it is not what `encode` makes."""
        found = msgspec.json.decode(data, type=dict[str, tuple[Measured, ...]])
        self._models = {
            model: sane for model, kept in found.items() if (sane := tuple(filter(_is_sane, kept)))
        }


class CorrectionsFile:
    """Corrections with their file."""

    def __init__(self, file: Path) -> None:
        self.corrections = Corrections()
        self._file = file

    def load(self) -> None:
        """Read the file. A damaged one is set aside as `….damaged`, and all is measured anew. Blocks."""
        try:
            self.corrections.decode(self._file.read_bytes())
        except FileNotFoundError:
            pass
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("%s is set aside: %s", self._file, error)
            self._set_aside()

    def _set_aside(self) -> None:
        try:
            self._file.replace(self._file.with_suffix(".damaged"))
        except OSError as error:
            log.warning("%s cannot be moved: %s", self._file, error)

    async def save(self) -> None:
        """Replace the file if there is something new; written in a pool thread."""
        if not self.corrections.is_dirty:
            return
        try:
            await asyncio.to_thread(replace_file, self._file, self.corrections.encode())
        except OSError as error:
            log.warning("%s cannot be written: %s", self._file, error)


def _is_sane(measured: Measured) -> bool:
    numbers = (*measured.base, *measured.gpu)
    return bool(measured.base and measured.gpu) and all(0 <= number <= _MOST_BYTES for number in numbers)
