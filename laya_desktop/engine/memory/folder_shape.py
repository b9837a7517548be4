"""The shape of a model in a folder: `config.json` and the headers of its safetensors files.

The names are those of Hugging Face's configs; mlx-lm reads the same. A safetensors file begins with the
length of its header as 64 bits and the header as JSON (https://huggingface.co/docs/safetensors).
"""

import json
import re
from pathlib import Path
from typing import Any

from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.engine.gguf_header import unusable
from laya_desktop.engine.memory.shape import LayerShape, ModelShape

_MAX_CONFIG = 4_000_000
_MAX_HEADER = 64_000_000
_MAX_LAYERS = 512
_LAYER_TENSOR = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")
_OUTPUT_TENSOR = re.compile(r"(?:^|\.)(?:lm_head|norm|ln_f|final_layernorm|embed_out)\.")
_INDEX = "model.safetensors.index.json"
_ELEMENT_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


def read_folder_shape(folder: Path, backend: str) -> ModelShape:
    """The shape of a folder for `hf` or `mlx`. Blocks on the disk.

    Raises LayaError: model_file_missing or model_load_failed, with a sentence about the file.
    """
    config = _Config(_json(folder / "config.json", _MAX_CONFIG), folder)
    sizes = _sizes(folder, config.layers)
    return ModelShape(
        backend=backend,
        architecture=config.text("model_type"),
        layers=tuple(_layer(config, index, backend, sizes.get(index, 0)) for index in range(config.layers)),
        embedding=config.number("hidden_size"),
        feed_forward=config.feed_forward,
        experts_used=config.number("num_experts_per_tok"),
        heads_width=config.number("num_attention_heads") * config.head_length,
        vocabulary=config.number("vocab_size"),
        input_bytes=sizes.get(_BEFORE, 0),
        output_bytes=sizes.get(_BEHIND, 0),
        tied_output=config.flag("tie_word_embeddings"),
        file_bytes=sum(sizes.values()),
        trained_context=config.number("max_position_embeddings") or None,
        element_bytes=_ELEMENT_BYTES.get(config.text("dtype") or config.text("torch_dtype"), 2),
        exact=all(config.kind(index) in _KNOWN_KINDS for index in range(config.layers)),
    )


_BEFORE, _BEHIND = -1, -2
_KNOWN_KINDS = ("full_attention", "sliding_attention", "chunked_attention", "linear_attention")


class _Config:
    """`config.json`; models that also see images keep the language model's part in `text_config`."""

    def __init__(self, data: dict[str, Any], folder: Path) -> None:
        inner = data.get("text_config")
        self._data = {**data, **inner} if isinstance(inner, dict) else data
        self.layers = self.number("num_hidden_layers")
        if not 0 < self.layers <= _MAX_LAYERS or not self.number("hidden_size"):
            raise unusable(folder / "config.json", "it does not say how large the model is")

    def number(self, key: str, default: int = 0) -> int:
        value = self._data.get(key)
        return value if isinstance(value, int) and value > 0 else default

    def text(self, key: str) -> str:
        value = self._data.get(key)
        return value if isinstance(value, str) else ""

    def flag(self, key: str) -> bool:
        return self._data.get(key) is True

    @property
    def head_length(self) -> int:
        return self.number("head_dim") or self.number("hidden_size") // max(
            1, self.number("num_attention_heads")
        )

    @property
    def feed_forward(self) -> int:
        experts = self.number("num_experts_per_tok") * self.number("moe_intermediate_size")
        return max(self.number("intermediate_size"), experts)

    def kind(self, index: int) -> str:
        kinds = self._data.get("layer_types")
        if isinstance(kinds, list) and index < len(kinds):
            return str(kinds[index])
        pattern = self.number("sliding_window_pattern")
        if pattern and self.number("sliding_window"):
            return "full_attention" if (index + 1) % pattern == 0 else "sliding_attention"
        is_other = any(key in self._data for key in ("ssm_cfg", "state_size", "mamba_d_state"))
        return "recurrent" if is_other else "full_attention"

    def window(self, index: int) -> int:
        size = self.number("sliding_window") or self.number("attention_chunk_size")
        if self.kind(index) in ("sliding_attention", "chunked_attention"):
            return size
        is_listed = "layer_types" in self._data or "sliding_window_pattern" in self._data
        return size if not is_listed and self.text("model_type") == "mistral" else 0


def _layer(config: _Config, index: int, backend: str, weights: int) -> LayerShape:
    if config.kind(index) == "linear_attention":
        return LayerShape(weights=weights, state=_linear_state(config))
    heads = config.number("num_attention_heads")
    if latent := config.number("kv_lora_rank"):
        rotated, plain = config.number("qk_rope_head_dim"), config.number("qk_nope_head_dim")
        if backend == "mlx":  # keeps the compressed form, as llama.cpp does
            return LayerShape(weights=weights, kv_heads=1, key_length=latent, value_length=rotated)
        return LayerShape(
            weights=weights,
            kv_heads=heads,
            key_length=rotated + plain,
            value_length=config.number("v_head_dim"),
        )
    length = config.head_length
    return LayerShape(
        weights=weights,
        kv_heads=config.number("num_key_value_heads", heads),
        key_length=length,
        value_length=length,
        window=config.window(index),
    )


def _linear_state(config: _Config) -> int:
    """Bytes of a gated delta net's state (transformers, Qwen3NextGatedDeltaNet): the last inputs of its
    convolution and one matrix for each head, in 32 bits."""
    keys = config.number("linear_num_key_heads") * config.number("linear_key_head_dim")
    values = config.number("linear_num_value_heads") * config.number("linear_value_head_dim")
    rolling = (2 * keys + values) * config.number("linear_conv_kernel_dim", 4)
    return 4 * (rolling + values * config.number("linear_key_head_dim"))


def _sizes(folder: Path, layers: int) -> dict[int, int]:
    """Bytes by layer, before the layers and behind them, of all files."""
    sizes: dict[int, int] = {}
    for file in _files(folder):
        for name, tensor in _header(file).items():
            match = _LAYER_TENSOR.search(name)
            place = min(int(match[1]), layers - 1) if match else _BEFORE
            if not match and _OUTPUT_TENSOR.search(name):
                place = _BEHIND
            sizes[place] = sizes.get(place, 0) + _tensor_bytes(file, name, tensor)
    return sizes


def _files(folder: Path) -> list[Path]:
    """The safetensors files of a model: those its index names, else all in the folder."""
    index = folder / _INDEX
    if index.exists():
        names = _json(index, _MAX_HEADER).get("weight_map")
        if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
            raise unusable(index, "it is damaged", "Download it again.")
        files = [folder / Path(name).name for name in sorted(set(names.values()))]
    else:
        files = sorted(folder.glob("*.safetensors"))
    missing = [file.name for file in files if not file.is_file()]
    if not files or missing:
        what = f"{missing[0]} is missing" if missing else "there is no safetensors file in it"
        raise LayaError(
            ErrorCode.MODEL_FILE_MISSING,
            f"{folder}: {what}.",
            hint="Download the model again, with all files.",
        )
    return files


def _header(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 2 <= length <= _MAX_HEADER:
                raise unusable(file, "not a safetensors file", "Download it again.")
            data = stream.read(length)
            size = stream.seek(0, 2)
        header = json.loads(data)
    except OSError as error:
        raise _unreadable(file, error) from error
    except ValueError as error:
        raise unusable(file, "its header is damaged", "Download it again.") from error
    if not isinstance(header, dict):
        raise unusable(file, "its header is damaged", "Download it again.")
    header.pop("__metadata__", None)
    end = max((_end(file, name, tensor) for name, tensor in header.items()), default=0)
    if size < 8 + length + end:
        raise unusable(file, f"truncated: {8 + length + end - size:,} bytes missing", "Download it again.")
    return header


def _offsets(file: Path, name: str, tensor: object) -> tuple[int, int]:
    offsets = tensor.get("data_offsets") if isinstance(tensor, dict) else None
    match offsets:
        case [int(start), int(end)] if 0 <= start <= end < 1 << 48:
            return start, end
    raise unusable(file, f"tensor '{name}' has a bad size", "Download it again.")


def _end(file: Path, name: str, tensor: object) -> int:
    return _offsets(file, name, tensor)[1]


def _tensor_bytes(file: Path, name: str, tensor: object) -> int:
    start, end = _offsets(file, name, tensor)
    return end - start


def _json(file: Path, limit: int) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            data = json.loads(stream.read(limit))
    except OSError as error:
        raise _unreadable(file, error) from error
    except ValueError as error:
        raise unusable(file, "it is damaged", "Download it again.") from error
    if not isinstance(data, dict):
        raise unusable(file, "it is damaged", "Download it again.")
    return data


def _unreadable(file: Path, error: OSError) -> LayaError:
    cause = "there is no such file" if isinstance(error, FileNotFoundError) else f"it cannot be read: {error}"
    return LayaError(
        ErrorCode.MODEL_FILE_MISSING, f"{file}: {cause}.", hint="Restore it or correct the path."
    )
