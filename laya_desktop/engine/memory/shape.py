"""What a model's memory depends on, read from the metadata of its files without loading them."""

from dataclasses import dataclass
from pathlib import Path

from laya_desktop.core.errors import ErrorCode, LayaError


@dataclass(frozen=True)
class LayerShape:
    """One layer. `weights` are bytes on the disk; `repacked` of them are kept a second time, in the order
    that this machine's processor likes. `state` are bytes per stream that do not grow with the context
    (recurrent layers). A cell of the KV cache has `kv_heads` × `key_length` elements of keys and `kv_heads` ×
    `value_length` of values, and `index_length` more keys where attention is sparse. `window` is how many
    tokens back the layer looks; 0 means all."""

    weights: int
    repacked: int = 0
    kv_heads: int = 0
    key_length: int = 0
    value_length: int = 0
    window: int = 0
    state: int = 0
    index_length: int = 0

    @property
    def key_width(self) -> int:
        return self.kv_heads * self.key_length

    @property
    def value_width(self) -> int:
        return self.kv_heads * self.value_length


@dataclass(frozen=True)
class ModelShape:
    """A model. Widths and counts are in elements, sizes in bytes.

    `input_bytes` are the weights before the layers (the table of tokens), `output_bytes` those behind them;
    with `tied_output` the table of tokens serves as output too. `output_repacked` is as in a layer.
    `feed_forward` is the widest inner layer that one token passes, all the `experts_used` together;
    `heads_width` all query heads together. `element_bytes` is one value of an unquantised KV cache. `exact`
    is False where the metadata does not say enough.
    """

    backend: str
    architecture: str
    layers: tuple[LayerShape, ...]
    embedding: int
    feed_forward: int
    heads_width: int
    vocabulary: int
    input_bytes: int
    output_bytes: int
    tied_output: bool
    file_bytes: int
    experts_used: int = 0
    output_repacked: int = 0
    trained_context: int | None = None
    element_bytes: int = 2
    exact: bool = True

    @property
    def weights(self) -> int:
        return self.input_bytes + self.output_bytes + sum(layer.weights for layer in self.layers)

    @property
    def has_windows(self) -> bool:
        return any(layer.window for layer in self.layers)


def read_shape(path: str | Path, backend: str) -> ModelShape:
    """The shape of the model at `path`: a GGUF file (any part of a split one), or a folder of safetensors for
    the backends `hf` and `mlx`. Blocks on the disk; reads headers only.

    Raises LayaError: model_file_missing if files are missing, model_load_failed if they are damaged,
    backend_missing for a backend that loads no files.
    """
    if backend == "gguf":
        from laya_desktop.engine.memory.gguf_shape import read_gguf_shape

        return read_gguf_shape(path)
    if backend in ("hf", "mlx"):
        from laya_desktop.engine.memory.folder_shape import read_folder_shape

        return read_folder_shape(Path(path), backend)
    raise LayaError(
        ErrorCode.BACKEND_MISSING,
        f"A model of the backend '{backend}' needs no memory here that could be estimated.",
        hint="It runs on the server that its address names.",
    )
