"""The shape of a GGUF model from its header.

Follows `load_hparams` of llama.cpp (src/llama-model.cpp, the files in src/models/ and src/llama-hparams.cpp
in the sources of llama-cpp-python 0.3.36): which keys there are, what they default to, and which layers look
back on a window or are recurrent.
"""

import platform
import re
from collections.abc import Sequence
from pathlib import Path

from laya_desktop.engine.catalog import model_parts
from laya_desktop.engine.gguf_header import GgufHeader, Tensor, read_header, unusable
from laya_desktop.engine.memory.shape import LayerShape, ModelShape

_LAYER_TENSOR = re.compile(r"blk\.(\d+)\.")
_MAX_LAYERS = 512
_F32 = 4

_REPACKED_ON_X86 = frozenset(("Q4_0", "Q4_K", "IQ4_NL", "MXFP4"))
_REPACKED_ON_ARM = _REPACKED_ON_X86 | {"Q5_K", "Q6_K", "Q8_0"}
"""Quantizations of which llama.cpp keeps a copy of its own on the processor, if their rows come in eights
(ggml/src/ggml-cpu/repack.cpp, ggml_repack_get_optimal_repack_type). Every x86 build has AVX2."""

_WINDOW_PATTERNS = {
    "afmoe": 4,
    "cohere2": 4,
    "cohere2moe": -4,
    "exaone-moe": 4,
    "exaone4": 4,
    "gemma2": 2,
    "gemma3": 6,
    "gemma3n": 5,
    "gpt-oss": 2,
    "laguna": -4,
    "llama4": 4,
    "mellum": 4,
    "muse-glimmer": 4,
    "olmo2": 4,
    "plamo3": 8,
    "smallthinker": -4,
}
"""Every how many layers one looks at everything: the last of them, or the first where it is negative."""
_LISTED_WINDOWS = frozenset(
    ("deepseek4", "dots3note", "gemma4", "granite_swa", "maple", "mimo2", "spark2_5", "step35")
)
"""Architectures whose files list the layers with a window one by one."""
_WINDOW_DEFAULTS = {"gemma2": 4096, "exaone-moe": 128}
_FIXED_WINDOWS = {"llama4": 8192, "smallthinker": 4096}

_RECURRENT = frozenset(("mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"))
_RECURRENT_WITHOUT_HEADS = frozenset(
    (
        *("jamba", "plamo2", "granitehybrid", "lfm2", "lfm2moe", "kimi-linear", "kimi-k3", "bailingmoe3"),
        *("glm5-next",),
    )
)
"""Hybrids in which a layer without KV heads is a recurrent one."""
_RECURRENT_INTERVALS = {"qwen3next": 4, "qwen35": 4, "qwen35moe": 4, "qwen4exp": 4, "minimax-01": 8}
"""Hybrids in which every so many layers one has attention, unless the file lists them."""
_INDEXED = frozenset(("glm-dsa", "deepseek32", "glm5-next", "qwen4exp", "hy_v4", "minimax-m3"))
_INEXACT = frozenset(("deepseek4", "dots3note"))
"""Their caches have more parts than are counted here; keys and values of all layers are more than those."""


def read_gguf_shape(path: str | Path) -> ModelShape:
    """The shape of a GGUF file, all its parts together. Raises LayaError as `engine.catalog` does."""
    parts = model_parts(path)
    return gguf_shape(parts[0], [read_header(part) for part in parts])


def gguf_shape(path: Path, headers: Sequence[GgufHeader]) -> ModelShape:
    """The shape that the headers of a model's parts describe; the first has the metadata.

    Raises LayaError (model_load_failed) if they do not say what every model must.
    """
    keys = _Keys(headers[0])
    if not 0 < keys.layers <= _MAX_LAYERS or not keys.number("embedding_length"):
        raise unusable(path, "its header does not say how large it is", "Download it again.")
    tensors = [tensor for header in headers for tensor in header.tensors]
    sizes = _Sizes(tensors, keys.layers)
    tokens = next((tensor for tensor in tensors if tensor.name == "token_embd.weight"), None)
    return ModelShape(
        backend="gguf",
        architecture=keys.architecture,
        layers=tuple(_layer(keys, index, sizes) for index in range(keys.cached_layers)),
        embedding=keys.number("embedding_length"),
        feed_forward=max(map(keys.feed_forward, range(keys.layers))),
        experts_used=max(map(keys.experts_used, range(keys.layers))),
        heads_width=max(map(keys.heads, range(keys.layers))) * keys.length("key", False),
        vocabulary=tokens.shape[1] if tokens and len(tokens.shape) > 1 else keys.number("vocab_size"),
        input_bytes=sizes.before,
        output_bytes=sizes.behind,
        output_repacked=sizes.behind_repacked,
        tied_output=not any(tensor.name == "output.weight" for tensor in tensors),
        file_bytes=sum(header.file_bytes for header in headers),
        trained_context=keys.number("context_length") or None,
        exact=keys.architecture not in _INEXACT,
    )


class _Sizes:
    """Bytes of what comes before the layers, of each of them and of what comes behind."""

    def __init__(self, tensors: Sequence[Tensor], layers: int) -> None:
        self.before = self.behind = self.behind_repacked = 0
        self.layers, self.repacked = [0] * _MAX_LAYERS, [0] * _MAX_LAYERS
        kinds = _REPACKED_ON_ARM if platform.machine() in ("arm64", "aarch64") else _REPACKED_ON_X86
        for tensor in tensors:
            size = -(-tensor.size_bytes // 32) * 32
            is_matrix = len(tensor.shape) > 1 and tensor.shape[1] % 8 == 0
            copied = size if is_matrix and tensor.quantization in kinds else 0
            match = _LAYER_TENSOR.match(tensor.name)
            if match:
                index = min(int(match[1]), layers - 1)
                self.layers[index] += size
                self.repacked[index] += copied
            elif tensor.name.startswith("output"):
                self.behind += size
                self.behind_repacked += copied
            else:
                self.before += size


class _Keys:
    """The metadata of one architecture, with llama.cpp's defaults."""

    def __init__(self, header: GgufHeader) -> None:
        self._header = header
        self.architecture = header.architecture
        self.layers = self.number("block_count")
        # The draft layers behind the last one have no cache in a context that generates.
        self.trunk = self.layers - min(self.number("nextn_predict_layers"), self.layers)

    @property
    def cached_layers(self) -> int:
        """Those that a cache is made for: stored ones, each as often as it runs, and a router's."""
        if self.architecture == "nanbeige":
            return min(self.layers * max(1, self.number("num_loops", 1)), _MAX_LAYERS)
        return self.layers + (self.architecture == "graniteswitch")

    def number(self, key: str, default: int = 0) -> int:
        return max(0, self._header.number(f"{self.architecture}.{key}", default))

    def each(self, key: str, index: int, default: int = 0) -> int:
        """A number that may be given for all layers at once or for each."""
        value = self._header.metadata.get(f"{self.architecture}.{key}", default)
        if isinstance(value, tuple):
            value = value[index % self.layers] if index % self.layers < len(value) else default
        return max(0, value) if isinstance(value, int) else default

    def is_list(self, key: str) -> bool:
        return isinstance(self._header.metadata.get(f"{self.architecture}.{key}"), tuple)

    def heads(self, index: int) -> int:
        return self.each("attention.head_count", index)

    def kv_heads(self, index: int) -> int:
        if self.architecture == "graniteswitch" and index == self.layers:
            return 1
        return self.each("attention.head_count_kv", index, self.heads(index))

    def length(self, what: str, window: bool) -> int:
        """Elements of one head's key or value."""
        heads = self.heads(0)
        full = self.number(f"attention.{what}_length", self.number("embedding_length") // max(1, heads))
        full = full if heads else 0
        return self.number(f"attention.{what}_length_swa", full) if window else full

    def feed_forward(self, index: int) -> int:
        plain = self.each("feed_forward_length", index)
        expert = self.each("expert_feed_forward_length", index, plain)
        shared = self.number("expert_shared_feed_forward_length")
        return max(plain, self.experts_used(index) * expert + shared)

    def experts_used(self, index: int) -> int:
        return self.each("expert_used_count", index)

    def window(self, index: int) -> int:
        """How far back a layer looks; 0 if at everything."""
        name, key = self.architecture, "attention.sliding_window"
        size = self.number(key, _WINDOW_DEFAULTS.get(name, 0))
        if name == "llama4" and f"llama4.{key}" not in self._header.metadata:
            size = _FIXED_WINDOWS[name]
        if not size or index >= self.trunk or (name == "exaone4" and self.trunk != 64):
            return 0
        size = _FIXED_WINDOWS.get(name, size)
        if name.startswith("lfm2"):
            return 0 if self.is_recurrent(index) else size
        if name not in _WINDOW_PATTERNS and name not in _LISTED_WINDOWS:
            return 0
        pattern = f"{key}_pattern"
        if self.is_list(pattern) or name in _LISTED_WINDOWS:
            return size if self.each(pattern, index, int(name == "deepseek4")) else 0
        period = self.number(pattern, abs(_WINDOW_PATTERNS[name]))
        if not period:
            return size
        first = _WINDOW_PATTERNS[name] < 0
        is_full = index % period == 0 if first else index % period == period - 1
        return 0 if is_full else size

    def is_recurrent(self, index: int) -> bool:
        if index >= self.trunk:
            return False
        name = self.architecture
        if name in _RECURRENT or name == "falcon-h1":
            return True
        if name in _RECURRENT_INTERVALS:
            if f"{name}.attention.recurrent_layers" in self._header.metadata:
                return bool(self.each("attention.recurrent_layers", index))
            interval = self.number("full_attention_interval", _RECURRENT_INTERVALS[name])
            return (index + 1) % max(1, interval) != 0
        without_heads = self.kv_heads(index) == 0
        if name.startswith("nemotron_h"):
            return without_heads and self.each("feed_forward_length", index) == 0
        return name in _RECURRENT_WITHOUT_HEADS and without_heads

    def has_cache(self, index: int) -> bool:
        """Whether a layer has keys and values of its own."""
        name = self.architecture
        if index >= self.trunk and name != "graniteswitch" and self.trunk:
            return False
        if name == "gemma3n":
            return index < 20
        if name == "gemma4":
            return index < self.layers - self.number("attention.shared_kv_layers")
        if name in _RECURRENT:
            return False
        return name == "falcon-h1" or not self.is_recurrent(index)

    def state(self) -> int:
        """Bytes of one stream's state in a recurrent layer: the `n_embd_r` and `n_embd_s` of llama.cpp."""
        embedding, heads = self.number("embedding_length"), self.heads(0)
        conv, inner, size = (self.number(f"ssm.{key}") for key in ("conv_kernel", "inner_size", "state_size"))
        if wkv := self.number("wkv.head_size"):
            rolling, state = self.number("token_shift_count", 2) * embedding, embedding * wkv
        elif short := self.number("shortconv.l_cache"):
            rolling, state = embedding * (short - 1), size * inner
        elif kda := self.number("kda.head_dim"):
            rolling, state = 3 * (conv - 1 if conv else 3) * heads * kda, kda * kda * heads
        else:
            groups = 0 if self.architecture in ("mamba", "jamba") else self.number("ssm.group_count")
            rolling = max(0, conv - 1) * (inner + 2 * groups * size)
            length = self.length("key", False) if self.architecture == "minimax-01" else 0
            state = length * length * heads if length else size * inner
        return _F32 * (rolling + state)

    def index_length(self, index: int) -> int:
        """Elements of a cell in the cache of keys by which sparse attention chooses."""
        name, length = self.architecture, self.number("attention.indexer.key_length")
        if name not in _INDEXED or not self.has_cache(index):
            return 0
        if name == "hy_v4" and not self.number("attention.indexer.top_k"):
            return 0
        if name == "minimax-m3":
            dense = index < self.number("leading_dense_block_count")
            return 0 if dense else length + self.length("value", False)
        if not self.each("attention.indexer.types", index, 1):
            return 0
        return length * (3 if self.number("attention.indexer.kpool") else 1)

    @property
    def is_compressed(self) -> bool:
        """Multi-head latent attention keeps one compressed key for both."""
        return bool(self.number("attention.key_length_mla") and self.number("attention.value_length_mla"))


def _layer(keys: _Keys, index: int, sizes: _Sizes) -> LayerShape:
    window, cached = keys.window(index), keys.has_cache(index)
    return LayerShape(
        weights=sizes.layers[index],
        repacked=sizes.repacked[index],
        kv_heads=keys.kv_heads(index) if cached else 0,
        key_length=keys.length("key", bool(window)) if cached else 0,
        value_length=keys.length("value", bool(window)) if cached and not keys.is_compressed else 0,
        window=window,
        state=keys.state() if keys.is_recurrent(index) else 0,
        index_length=keys.index_length(index),
    )
