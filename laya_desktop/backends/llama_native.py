"""Every call into llama.cpp. Nothing else in the package imports `llama_cpp`.

Written against the low-level API of one release: structs and signatures change between releases, and ctypes
checks neither, so `check_library` refuses any other. Objects here own native memory; `Model.close` frees all
of it. Everything is called from the worker's main thread, but for `Vocabulary.tokenise` and `pieces`, which
llama.cpp lets any thread call. ctypes lets other threads run during a call.
"""

import ctypes
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence

import llama_cpp
import llama_cpp.llama_cpp as api

from laya_desktop.backends.common.chat_template import SpecialToken
from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.core.types import Sampling

VERSION = "0.3.36"

BATCH_TOKENS = 512
"""Most tokens in one decode."""

_REPEAT_WINDOW = 64
"""Tokens that the repeat penalty looks back on; presence and frequency count over the whole answer."""

_LOG_INFO, _LOG_ERROR, _LOG_CONTINUED = 2, 4, 5
_last_errors: deque[str] = deque(maxlen=3)
_logged_level = 0


def _on_log(level: int, text: bytes, _: object) -> None:
    global _logged_level
    if level != _LOG_CONTINUED:
        _logged_level = level
    if _logged_level >= _LOG_INFO:
        os.write(2, text)
    if _logged_level == _LOG_ERROR:
        _last_errors.append(text.decode("utf-8", "replace").strip())


# llama.cpp keeps the pointer, so the callback has to live as long as the process.
_log_callback = api.llama_log_callback(_on_log)


def check_library() -> None:
    """See that this is the release we know and that its structs and samplers do what we think they do.

    Raises LayaError (BACKEND_MISSING). Takes a millisecond.
    """
    if llama_cpp.__version__ != VERSION:
        raise _broken(f"llama-cpp-python {llama_cpp.__version__} is installed, {VERSION} is needed.")
    defaults = api.llama_context_default_params()
    known = (defaults.n_batch, defaults.n_ubatch, defaults.swa_full, defaults.kv_unified)
    if known != (2048, 512, True, False):
        raise _broken("llama.cpp's settings are not laid out as expected.")
    # The second token leads until the penalty for its repetition applies.
    logits = [1.0, 2.0, 1.5]
    sampler = Sampler(
        Sampling(temperature=0, repeat_penalty=2.0, presence_penalty=0.1, frequency_penalty=0.1), 3, 8
    )
    try:
        picks = [sampler.pick(logits), sampler.pick(logits)]
    finally:
        sampler.free()
    if picks != [1, 2]:
        raise _broken("llama.cpp's samplers do not work as expected.")


class Sampler:
    """A chain that holds only the samplers that are on. Counts the tokens it has drawn."""

    def __init__(self, sampling: Sampling, vocabulary: int, context_tokens: int) -> None:
        self._chain = api.llama_sampler_chain_init(api.llama_sampler_chain_default_params())
        if sampling.repeat_penalty != 1.0:
            self._add(
                api.llama_sampler_init_penalties(vocabulary, _REPEAT_WINDOW, sampling.repeat_penalty, 0, 0)
            )
        if sampling.presence_penalty or sampling.frequency_penalty:
            self._add(
                api.llama_sampler_init_penalties(
                    vocabulary, context_tokens, 1, sampling.frequency_penalty, sampling.presence_penalty
                )
            )
        if sampling.temperature <= 0:
            self._add(api.llama_sampler_init_greedy())
            return
        if sampling.top_k > 0:
            self._add(api.llama_sampler_init_top_k(sampling.top_k))
        if sampling.top_p < 1:
            self._add(api.llama_sampler_init_top_p(sampling.top_p, 1))
        if sampling.min_p > 0:
            self._add(api.llama_sampler_init_min_p(sampling.min_p, 1))
        if sampling.temperature != 1:
            self._add(api.llama_sampler_init_temp(sampling.temperature))
        # llama.cpp takes the largest 32-bit number as "draw a seed".
        seed = int.from_bytes(os.urandom(4)) if sampling.seed is None else sampling.seed
        self._add(api.llama_sampler_init_dist(seed % 0xFFFFFFFF))

    def _add(self, sampler: "api.llama_sampler_p") -> None:
        api.llama_sampler_chain_add(self._chain, sampler)

    def pick(self, logits: Sequence[float]) -> int:
        """Draw a token, given the logits of all."""
        data = (api.llama_token_data * len(logits))()
        for token, logit in enumerate(logits):
            data[token] = api.llama_token_data(token, logit, 0.0)
        array = api.llama_token_data_array(data, len(data), -1, False)
        api.llama_sampler_apply(self._chain, ctypes.byref(array))
        token = int(data[array.selected].id)
        api.llama_sampler_accept(self._chain, token)
        return token

    def free(self) -> None:
        api.llama_sampler_free(self._chain)


class Vocabulary:
    """The model's tokens. Implements `common.chat_template.Tokenizer`."""

    def __init__(self, model: api.llama_model_p) -> None:
        vocab = api.llama_model_get_vocab(model)
        if vocab is None:
            raise LayaError(ErrorCode.MODEL_LOAD_FAILED, "The model has no vocabulary.")
        self._vocab = vocab
        self.size = int(api.llama_vocab_n_tokens(vocab))
        self.adds_bos = bool(api.llama_vocab_get_add_bos(vocab))
        self.bos = _token_or_none(api.llama_vocab_bos(vocab))
        self.eos = _token_or_none(api.llama_vocab_eos(vocab))
        self.special_tokens = self._special_tokens()
        self._pieces: dict[int, bytes] = {}
        self._buffer = ctypes.create_string_buffer(4096)

    def _special_tokens(self) -> list[SpecialToken]:
        plain = api.LLAMA_TOKEN_ATTR_USER_DEFINED
        special = plain | api.LLAMA_TOKEN_ATTR_CONTROL | api.LLAMA_TOKEN_ATTR_UNKNOWN
        found = []
        for token in range(self.size):
            attributes = api.llama_vocab_get_attr(self._vocab, token)
            if attributes & special:
                found.append(
                    SpecialToken(
                        id=token,
                        text=self.text_of(token),
                        matched_in_plain=attributes & special == plain,
                        strips_left=bool(attributes & api.LLAMA_TOKEN_ATTR_LSTRIP),
                        strips_right=bool(attributes & api.LLAMA_TOKEN_ATTR_RSTRIP),
                    )
                )
        return found

    def text_of(self, token: int) -> str:
        """How the vocabulary spells a token."""
        return (api.llama_vocab_get_text(self._vocab, token) or b"").decode("utf-8", "replace")

    def tokenise(self, text: str, *, parse_special: bool = False) -> list[int]:
        """Token ids of `text`, nothing added. Lone surrogates become question marks."""
        data = text.encode("utf-8", "replace")
        room = len(data) + 8
        while True:
            tokens = (api.llama_token * room)()
            count = api.llama_tokenize(self._vocab, data, len(data), tokens, room, False, parse_special)
            if count >= 0:
                return tokens[:count]
            room = -count

    def piece(self, token: int) -> bytes:
        """The bytes that a token adds to an answer; none for control tokens."""
        piece = self._pieces.get(token)
        if piece is None:
            size = api.llama_token_to_piece(self._vocab, token, self._buffer, len(self._buffer), 0, False)
            piece = self._pieces[token] = self._buffer.raw[: max(size, 0)]
        return piece

    def pieces(self) -> Iterator[bytes]:
        """The bytes of every token in turn, none for control tokens. For any thread."""
        buffer = ctypes.create_string_buffer(4096)
        for token in range(self.size):
            size = api.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, False)
            yield ctypes.string_at(buffer, max(size, 0))

    def ends_generation(self, token: int) -> bool:
        return bool(api.llama_vocab_is_eog(self._vocab, token))


class Batch:
    """The tokens of one decode. Its arrays live as long as the model and are filled anew for every step."""

    def __init__(self) -> None:
        size = BATCH_TOKENS
        self._token = (api.llama_token * size)()
        self._position = (api.llama_pos * size)()
        self._sequence = (api.llama_seq_id * size)()
        self._wanted = (ctypes.c_int8 * size)()
        self._ones = (ctypes.c_int32 * size)(*[1] * size)
        # Each row belongs to one sequence and points at its own cell of `_sequence`.
        cell, start = ctypes.sizeof(api.llama_seq_id), ctypes.addressof(self._sequence)
        pointer = ctypes.POINTER(api.llama_seq_id)
        self._sequences = (pointer * size)(*(ctypes.cast(start + row * cell, pointer) for row in range(size)))
        self.native = api.llama_batch(
            0,
            ctypes.cast(self._token, ctypes.POINTER(api.llama_token)),
            None,
            ctypes.cast(self._position, ctypes.POINTER(api.llama_pos)),
            ctypes.cast(self._ones, ctypes.POINTER(ctypes.c_int32)),
            ctypes.cast(self._sequences, ctypes.POINTER(pointer)),
            ctypes.cast(self._wanted, ctypes.POINTER(ctypes.c_int8)),
        )

    @property
    def room(self) -> int:
        return BATCH_TOKENS - int(self.native.n_tokens)

    def clear(self) -> None:
        self.native.n_tokens = 0

    def add(self, tokens: list[int], position: int, sequence: int, *, wanted: bool) -> int:
        """Append tokens of one sequence; `wanted` asks for the logits of the last one, whose row is
        returned."""
        count = len(tokens)
        begin = self.native.n_tokens
        end = begin + count
        self._token[begin:end] = [*tokens]
        self._position[begin:end] = list(range(position, position + count))
        self._sequence[begin:end] = [sequence] * count
        self._wanted[begin:end] = [0] * count
        self._wanted[end - 1] = wanted
        self.native.n_tokens = end
        return int(end - 1)


class Model:
    """A loaded model with one context for `sequences` sequences of `context_tokens` tokens each."""

    version = VERSION

    def __init__(
        self,
        path: str,
        *,
        context_tokens: int,
        sequences: int,
        threads: int,
        gpu_layers: int,
        on_progress: Callable[[float], None],
    ) -> None:
        """Load, which takes seconds to minutes. Raises LayaError (BACKEND_MISSING, MODEL_LOAD_FAILED)."""
        check_library()
        api.llama_log_set(_log_callback, None)
        api.llama_backend_init()
        self._context: api.llama_context_p | None = None
        model = _load(path, gpu_layers, on_progress)
        self._model: api.llama_model_p | None = model
        try:
            self.vocabulary = Vocabulary(model)
            self._context = _new_context(model, context_tokens, sequences, threads, gpu_layers != 0)
            self._memory = api.llama_get_memory(self._context)
        except BaseException:
            self.close()
            raise
        self.context_tokens = int(api.llama_n_ctx_seq(self._context))
        self.batch = Batch()

    def metadata(self, key: str) -> str | None:
        """A value of the file's header as text, None if it is not there."""
        size = api.llama_model_meta_val_str(self._model, key.encode(), None, 0)
        if size < 0:
            return None
        buffer = ctypes.create_string_buffer(size + 1)
        api.llama_model_meta_val_str(self._model, key.encode(), buffer, size + 1)
        return buffer.value.decode("utf-8", "replace")

    def decode(self) -> None:
        """Compute the batch. Raises LayaError (INTERNAL); the cache of its sequences is then unknown."""
        code = api.llama_decode(self._context, self.batch.native)
        if code != 0:
            raise LayaError(ErrorCode.INTERNAL, f"llama.cpp could not compute a step (code {code}).")

    def use_threads(self, count: int) -> None:
        """Compute with `count` threads from the next decode on."""
        api.llama_set_n_threads(self._context, count, count)

    def new_sampler(self, sampling: Sampling) -> Sampler:
        """The caller frees it."""
        return Sampler(sampling, self.vocabulary.size, self.context_tokens)

    def sample(self, sampler: Sampler, row: int) -> int:
        """Draw a token from the logits of a row of the batch just decoded."""
        return int(api.llama_sampler_sample(sampler._chain, self._context, row))

    def trim(self, sequence: int, position: int) -> bool:
        """Forget what a sequence holds from `position` on. False if this model can only forget all."""
        return bool(api.llama_memory_seq_rm(self._memory, sequence, position, -1))

    def forget(self, sequence: int) -> None:
        """Forget all that a sequence holds."""
        api.llama_memory_seq_rm(self._memory, sequence, -1, -1)

    def close(self) -> None:
        """Free everything; nothing may be called afterwards."""
        if self._context is not None:
            api.llama_free(self._context)
            self._context = None
        if self._model is not None:
            api.llama_model_free(self._model)
            self._model = None


def _load(path: str, gpu_layers: int, on_progress: Callable[[float], None]) -> api.llama_model_p:
    def report(fraction: float, _: object) -> bool:
        on_progress(fraction)
        return True

    _last_errors.clear()
    params = api.llama_model_default_params()
    params.n_gpu_layers = gpu_layers
    params.progress_callback = api.llama_progress_callback(report)
    model: api.llama_model_p | None = api.llama_model_load_from_file(os.fsencode(path), params)
    if model is None:
        raise _load_error("The model could not be loaded.")
    return model


def _new_context(
    model: api.llama_model_p, context_tokens: int, sequences: int, threads: int, gpu: bool
) -> api.llama_context_p:
    if api.llama_model_has_encoder(model) or not api.llama_model_has_decoder(model):
        raise LayaError(ErrorCode.MODEL_LOAD_FAILED, "This model cannot generate text.")
    params = api.llama_context_default_params()
    params.n_ctx = context_tokens * sequences
    params.n_seq_max = sequences
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    # One row of logits per sequence is all that a step reads; more would cost memory.
    params.n_outputs_max = sequences
    params.n_threads = params.n_threads_batch = threads
    params.offload_kqv = params.op_offload = gpu
    # A sliding window that is not kept whole breaks prefix reuse without a word.
    params.swa_full = True
    params.kv_unified = False
    context: api.llama_context_p | None = api.llama_init_from_model(model, params)
    if context is None:
        raise _load_error("There is no room for the model's context.")
    return context


def _load_error(message: str) -> LayaError:
    reason = " ".join(_last_errors)
    return LayaError(ErrorCode.MODEL_LOAD_FAILED, f"{message} {reason}".strip())


def _broken(message: str) -> LayaError:
    return LayaError(
        ErrorCode.BACKEND_MISSING, message, hint=f"Reinstall it: pip install llama-cpp-python=={VERSION}"
    )


def _token_or_none(token: int) -> int | None:
    return token if token >= 0 else None
