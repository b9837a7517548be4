"""The backend for GGUF files: llama.cpp with continuous batching.

Requests wait in a queue, take a slot of the KV cache and run. Every step builds one batch of the running
streams' last tokens and of a chunk of prompts, decodes it once and draws one token for each stream. Chats
become prompts in a helper thread (`common.prompts`), which tokenises; every other call into llama.cpp is made
from the main thread.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from laya_desktop.backends.base import StreamEvent
from laya_desktop.backends.common.chat_template import ChatTemplate
from laya_desktop.backends.common.pacing import PrefillPace
from laya_desktop.backends.common.prompts import PromptEncoder
from laya_desktop.backends.common.slots import Slot, choose_slot
from laya_desktop.backends.common.text_stream import TextStream
from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.core.events import (
    Accepted,
    Cancelled,
    Delta,
    Failed,
    Finished,
    FinishReason,
    Prefill,
    WorkerEvent,
)
from laya_desktop.core.types import LoadedInfo, LoadSpec, Message, Sampling, Timings, Usage

if TYPE_CHECKING:
    from laya_desktop.backends.llama_native import Model, Sampler


_BLOCK = 64
"""llama.cpp computes attention of this many tokens and more by another kernel, which rounds differently.
Prompts are computed in whole blocks and a rest, so that the pace does not decide which part gets which."""

_ENCODING_WAIT_S = 0.05
"""How long a step with nothing to compute waits for a prompt; a cancel waits as long."""


@dataclass(slots=True, eq=False)
class _Request:
    """A request that waits for a slot."""

    id: str
    prompt: list[int]
    sampling: Sampling


@dataclass(slots=True, eq=False)
class _Stream:
    """A running request. The tokens in its slot are its prompt so far, then its answer but for the last
    token, which the next step will compute."""

    id: str
    prompt: list[int]
    slot: Slot
    sampler: "Sampler"
    text: TextStream
    limit: int
    reused: int
    started: float
    first_token: float = 0.0
    last_token: int = 0
    drawn: int = 0
    untold: int = 0
    """Tokens that no delta has reported yet."""
    row: int = -1
    """Where its logits are in the current batch; -1 if it draws nothing in this step."""

    @property
    def prefilling(self) -> bool:
        return len(self.slot.tokens) < len(self.prompt)


class GgufBackend:
    """Implements `backends.base.Backend`."""

    def __init__(self) -> None:
        self._waiting: deque[_Request] = deque()
        self._running: list[_Stream] = []
        self._events: list[StreamEvent] = []
        self._uses = 0

    def load(self, spec: LoadSpec, on_progress: Callable[[float], None]) -> LoadedInfo:
        if not Path(spec.path).is_file():
            raise LayaError(ErrorCode.MODEL_FILE_MISSING, f"There is no file {spec.path}.")
        self._model = model = _open(spec, on_progress)
        # llama.cpp may round the context up; what was asked for is what was admitted.
        self._context_tokens = min(spec.context_tokens, model.context_tokens)
        self._template = ChatTemplate(
            spec.chat_template or model.metadata("tokenizer.chat_template"), model.vocabulary
        )
        self._prompts = PromptEncoder(self._template, model.vocabulary.pieces, self._context_tokens)
        self._slots = [Slot(sequence) for sequence in range(spec.max_streams)]
        try:
            self._warm_up()
        except LayaError:
            model.close()
            raise
        return LoadedInfo(
            context_tokens=self._context_tokens,
            max_streams=spec.max_streams,
            backend_version=f"llama-cpp-python {model.version}",
        )

    def _warm_up(self) -> None:
        """Compute two tokens, twice. It brings the weights into memory and shows the speed, and whether this
        build runs on this processor (with one token it may seem to)."""
        batch = self._model.batch
        for _ in range(2):
            started = time.perf_counter()
            batch.clear()
            batch.add([0, 0], 0, 0, wanted=True)
            self._model.decode()
            self._pace = PrefillPace(2, time.perf_counter() - started)
            self._model.forget(0)

    def submit(self, request_id: str, messages: Sequence[Message], sampling: Sampling) -> None:
        if sampling.max_tokens is not None and sampling.max_tokens < 1:
            error = LayaError(ErrorCode.INVALID_REQUEST, "max_tokens must be at least 1.", param="max_tokens")
            self._tell(request_id, Failed(error=error.info))
        else:
            self._prompts.start(request_id, messages, sampling)

    def cancel(self, request_id: str) -> None:
        if self._prompts.cancel(request_id):
            self._tell(request_id, Cancelled())
            return
        for request in self._waiting:
            if request.id == request_id:
                self._waiting.remove(request)
                self._tell(request_id, Cancelled())
                return
        for stream in self._running:
            if stream.id == request_id:
                self._leave(stream, Cancelled())
                return

    @property
    def has_work(self) -> bool:
        return bool(self._events or self._prompts.has_work or self._waiting or self._running)

    def step(self) -> list[StreamEvent]:
        self._collect()
        self._admit()
        if self._running:
            self._compute()
        events, self._events = self._events, []
        return events

    def use_threads(self, count: int) -> None:
        self._model.use_threads(count)

    def close(self) -> None:
        for stream in self._running:
            stream.sampler.free()
        self._running.clear()
        self._waiting.clear()
        self._prompts.close()
        self._model.close()

    # One step

    def _collect(self) -> None:
        """Take over the prompts that are ready."""
        is_idle = not (self._events or self._waiting or self._running)
        for encoding in self._prompts.ready(_ENCODING_WAIT_S if is_idle else 0):
            try:
                prompt = encoding.prompt.result()
            except LayaError as error:
                self._tell(encoding.id, Failed(error=error.info))
            else:
                self._waiting.append(_Request(encoding.id, prompt, encoding.sampling))

    def _admit(self) -> None:
        """Give waiting requests a slot, first come, first served."""
        while self._waiting and (slot := choose_slot(self._slots, self._waiting[0].prompt)):
            request = self._waiting.popleft()
            prompt, sampling = request.prompt, request.sampling
            reused = self._reuse(slot, prompt, sampling)
            room = self._context_tokens - len(prompt)
            self._uses += 1
            slot.last_used = self._uses
            slot.busy = True
            self._running.append(
                _Stream(
                    id=request.id,
                    prompt=prompt,
                    slot=slot,
                    sampler=self._model.new_sampler(sampling),
                    text=TextStream(sampling.stop),
                    limit=room if sampling.max_tokens is None else min(room, sampling.max_tokens),
                    reused=reused,
                    started=time.perf_counter(),
                )
            )
            self._tell(
                request.id,
                Accepted(
                    prompt_tokens=len(prompt), reused_tokens=reused, context_tokens=self._context_tokens
                ),
            )

    def _reuse(self, slot: Slot, prompt: list[int], sampling: Sampling) -> int:
        """Leave in the slot what serves the prompt; number of tokens."""
        reproducible = sampling.seed is not None or sampling.temperature <= 0
        kept = slot.reusable(prompt, reproducible=reproducible)
        if kept < len(slot.tokens):
            if not (kept and self._model.trim(slot.sequence, kept)):
                self._model.forget(slot.sequence)
                kept = 0
            slot.cut(kept)
        return kept

    def _compute(self) -> None:
        streams = self._running
        shared = not all(stream.prefilling for stream in streams)
        prefilled = self._fill_batch(streams, self._pace.budget(shared=shared))
        started = time.perf_counter()
        try:
            self._model.decode()
        except LayaError as error:
            self._fail_all(error)
            return
        now = time.perf_counter()
        self._pace.measured(now - started, prefilled=prefilled, shared=shared)
        for stream in tuple(streams):
            if stream.row >= 0:
                self._draw(stream, now)

    def _fill_batch(self, streams: Sequence[_Stream], budget: int) -> int:
        """Fill the batch, decoding streams first, with `budget` prompt tokens at most; number of prompt
        tokens in it. The slots then hold what they will hold once it is computed."""
        batch = self._model.batch
        batch.clear()
        for stream in streams:
            stream.row = -1
            if not stream.prefilling:
                slot, token = stream.slot, [stream.last_token]
                stream.row = batch.add(token, len(slot.tokens), slot.sequence, wanted=True)
                slot.append(token, 1)
        budget = min(budget, batch.room)
        prefilled = 0
        for stream in streams:
            if budget > prefilled and stream.row < 0:
                prefilled += self._add_prompt(stream, budget - prefilled)
        return prefilled

    def _add_prompt(self, stream: _Stream, budget: int) -> int:
        """Add the next chunk of a prompt, `budget` tokens at most; number of tokens."""
        slot, total = stream.slot, len(stream.prompt)
        done = len(slot.tokens)
        count = min(budget, total - done)
        if count > _BLOCK:
            count -= count % _BLOCK
        chunk = stream.prompt[done : done + count]
        is_last = done + count == total
        row = self._model.batch.add(chunk, done, slot.sequence, wanted=is_last)
        if is_last:
            stream.row = row
        slot.append(chunk, _BLOCK)
        self._tell(stream.id, Prefill(done=done + count, total=total))
        return count

    def _draw(self, stream: _Stream, now: float) -> None:
        """Draw a stream's next token and tell what it means."""
        if not stream.first_token:
            stream.first_token = now
        token = self._model.sample(stream.sampler, stream.row)
        vocabulary = self._model.vocabulary
        if vocabulary.ends_generation(token):
            self._finish(stream, FinishReason.STOP)
            return
        stream.last_token = token
        stream.drawn += 1
        stream.untold += 1
        self._say(stream, stream.text.feed(vocabulary.piece(token)))
        if stream.text.stopped:
            self._finish(stream, FinishReason.STOP)
        elif stream.drawn >= stream.limit:
            self._finish(stream, FinishReason.LENGTH)

    # Telling

    def _tell(self, request_id: str, event: WorkerEvent) -> None:
        self._events.append(StreamEvent(request_id, event))

    def _say(self, stream: _Stream, text: str) -> None:
        if text:
            self._tell(stream.id, Delta(text=text, tokens=stream.untold))
            stream.untold = 0

    def _finish(self, stream: _Stream, reason: FinishReason) -> None:
        self._say(stream, stream.text.finish())
        self._leave(
            stream,
            Finished(
                reason=reason,
                usage=Usage(
                    prompt_tokens=len(stream.prompt),
                    completion_tokens=stream.drawn,
                    reused_tokens=stream.reused,
                ),
                timings=Timings(
                    prefill_ms=(stream.first_token - stream.started) * 1000,
                    decode_ms=(time.perf_counter() - stream.first_token) * 1000,
                ),
            ),
        )

    def _leave(self, stream: _Stream, event: WorkerEvent) -> None:
        """End a stream. Its slot keeps what was computed."""
        self._running.remove(stream)
        stream.sampler.free()
        stream.slot.busy = False
        self._tell(stream.id, event)

    def _fail_all(self, error: LayaError) -> None:
        """A step went wrong: nobody knows what the slots of its streams hold now."""
        for stream in tuple(self._running):
            self._model.forget(stream.slot.sequence)
            stream.slot.cut(0)
            self._leave(stream, Failed(error=error.info))


def _open(spec: LoadSpec, on_progress: Callable[[float], None]) -> "Model":
    # Imported this late, a missing library is an error like any other.
    try:
        from laya_desktop.backends.llama_native import Model
    except (ImportError, OSError, RuntimeError) as error:
        raise LayaError(
            ErrorCode.BACKEND_MISSING,
            f"llama.cpp cannot be used: {error}",
            hint="Reinstall llama-cpp-python.",
        ) from error
    return Model(
        spec.path,
        context_tokens=spec.context_tokens,
        sequences=spec.max_streams,
        threads=spec.threads,
        gpu_layers=spec.gpu_layers,
        on_progress=on_progress,
    )
