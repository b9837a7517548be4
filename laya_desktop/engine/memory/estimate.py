"""What a model will need once it is loaded and its context is full. Pure arithmetic on a `ModelShape`.

The formulas are those of llama.cpp as it is in llama-cpp-python 0.3.36 (paths are relative to
vendor/llama.cpp of its sources), for the context that `backends/llama_native.py` makes: the KV cache is not
unified, attention is fused (flash attention), and one row of logits is kept per stream.
"""

from collections.abc import Callable

from laya_desktop.core.types import KvType, MemoryEstimate
from laya_desktop.engine.memory.shape import LayerShape, ModelShape

MIB = 1 << 20
CELL_STEP = 256
"""The number of cells of a stream is a multiple of this."""
BATCH_TOKENS = 512

_KV_BLOCKS: dict[KvType, tuple[int, int]] = {"f16": (1, 2), "q8_0": (32, 34), "q4_0": (32, 18)}
"""Elements of a block and its bytes (ggml/src/ggml-common.h)."""
_F16, _F32 = 2, 4
_INPUT_BYTES = 24
"""Of each token beside the masks: its number, its position and the cells that it goes to."""


def estimate(
    shape: ModelShape,
    *,
    context_tokens: int,
    streams: int,
    kv_type: KvType = "f16",
    gpu_layers: int = 0,
    batch_tokens: int = BATCH_TOKENS,
    swa_full: bool = True,
) -> MemoryEstimate:
    """Memory of a model with `streams` streams of `context_tokens` tokens each.

    `gpu_layers` counts from the end, the output first, as llama.cpp does; -1 means all, 0 none. With
    `swa_full` layers with a sliding window keep all cells and not only those that they can see.
    """
    gpu = set(gpu_layer_indices(shape, gpu_layers))
    output_on_gpu = gpu_layers != 0
    weights, repacked, gpu_weights = shape.input_bytes, 0, 0
    if output_on_gpu:
        gpu_weights += shape.output_bytes + (shape.input_bytes if shape.tied_output else 0)
    else:
        weights += shape.output_bytes
        repacked += shape.output_repacked
    kv = gpu_kv = 0
    for index, layer in enumerate(shape.layers):
        cache = layer_cache_bytes(
            layer,
            context_tokens=context_tokens,
            streams=streams,
            kv_type=kv_type,
            batch_tokens=batch_tokens,
            swa_full=swa_full,
            element_bytes=shape.element_bytes,
        )
        if index in gpu:
            gpu_weights += layer.weights
            gpu_kv += cache
        else:
            weights += layer.weights
            repacked += layer.repacked
            kv += cache
    buffers = compute_bytes(
        shape,
        context_tokens=context_tokens,
        streams=streams,
        kv_type=kv_type,
        batch_tokens=batch_tokens,
        swa_full=swa_full,
    )
    return MemoryEstimate(
        weights=weights,
        repacked=repacked,
        kv=kv,
        compute=buffers + output_bytes(shape, streams),
        base=base_bytes(shape),
        gpu_weights=gpu_weights,
        gpu_kv=gpu_kv,
        gpu_compute=buffers if output_on_gpu else 0,
        exact=shape.exact,
    )


def gpu_layer_indices(shape: ModelShape, gpu_layers: int) -> range:
    """Which layers run on the GPU: the last ones. The output counts as one more, which goes there first
    (src/llama-model.cpp, load_tensors: `i_gpu_start`)."""
    count = len(shape.layers)
    first = 0 if gpu_layers < 0 else max(0, count + 1 - gpu_layers)
    return range(min(first, count), count)


def cells_per_stream(context_tokens: int, streams: int) -> int:
    """Cells of one stream's KV cache (src/llama-context.cpp: `n_ctx_seq`, padded before and after the
    division)."""
    return _padded(_padded(context_tokens * streams) // streams)


def window_cells(window: int, cells: int, batch_tokens: int, swa_full: bool) -> int:
    """Cells of one stream in a layer with a sliding window (src/llama-kv-cache-iswa.cpp: `size_swa`)."""
    return cells if swa_full or not window else _padded(min(cells, window + batch_tokens))


def layer_cache_bytes(
    layer: LayerShape,
    *,
    context_tokens: int,
    streams: int,
    kv_type: KvType,
    batch_tokens: int = BATCH_TOKENS,
    swa_full: bool = True,
    element_bytes: int = _F16,
) -> int:
    """Bytes that one layer keeps for all streams: keys and values of every cell (src/llama-kv-cache.cpp) and
    the state of a recurrent layer, one row of 32-bit numbers per stream (src/llama-memory-recurrent.cpp)."""
    cells = window_cells(layer.window, cells_per_stream(context_tokens, streams), batch_tokens, swa_full)
    block, block_bytes = (1, element_bytes) if kv_type == "f16" else _KV_BLOCKS[kv_type]
    widths = (layer.key_width, layer.value_width, layer.index_length)
    cell = sum(width * block_bytes // block for width in widths)
    return streams * (cells * cell + layer.state)


def kv_type_fits(shape: ModelShape, kv_type: KvType) -> bool:
    """Whether the cache can be kept in this type: blocks must not cross heads (src/llama-context.cpp,
    llama_init_from_model)."""
    block, _ = _KV_BLOCKS[kv_type]
    return all(layer.key_length % block == 0 and layer.value_length % block == 0 for layer in shape.layers)


def output_bytes(shape: ModelShape, streams: int) -> int:
    """The buffer of logits: one row per stream (src/llama-context.cpp, output_reserve)."""
    return streams * shape.vocabulary * _F32


def compute_bytes(
    shape: ModelShape,
    *,
    context_tokens: int,
    streams: int,
    kv_type: KvType = "f16",
    batch_tokens: int = BATCH_TOKENS,
    swa_full: bool = True,
) -> int:
    """The buffer for intermediate results of the largest batch (src/llama-context.cpp, graph_reserve).

    It holds the inputs of the batch, chiefly the attention masks: one half-precision number for each token
    and each cell, one mask for layers with a window and one for the others (src/llama-graph.cpp,
    build_attn_inp_kv_iswa). Beside them, what lives at the same time. In the feed-forward part these are
    three inner rows per token (gate, up and their product), two outer rows (the residual and its norm), and
    the room of an outer row and of the queries, which ggml's allocator (ggml/src/ggml-alloc.c) leaves free in
    front of them because an inner row does not fit. With experts, the outputs of those used are there twice.
    At the end, there are the logits of every stream. A quantised cache turns keys and queries by a matrix.
    """
    cells = cells_per_stream(context_tokens, streams)
    tokens = -(-min(cells * streams, batch_tokens) // streams) * streams
    cached = [layer for layer in shape.layers if layer.key_width]
    windows = {window_cells(layer.window, cells, batch_tokens, swa_full) for layer in cached if layer.window}
    everything = {cells for layer in cached if not layer.window}
    inputs = tokens * sum(_F16 * size + _INPUT_BYTES for size in windows | everything)
    if windows and everything and windows == everything:
        inputs *= 2
    embedding = shape.embedding
    feed_forward = 3 * shape.feed_forward + 3 * embedding + shape.heads_width
    if kv_type != "f16" and windows:
        feed_forward += embedding
    experts = 2 * shape.experts_used * embedding + 4 * embedding + shape.heads_width
    logits = streams * shape.vocabulary + tokens * embedding
    return inputs + _F32 * max(tokens * feed_forward, tokens * experts, logits)


def base_bytes(shape: ModelShape) -> int:
    """What the worker itself needs: interpreter and libraries, and its tables of tokens. Measured on x86-64
    Linux with Python 3.11: 51 to 57 MiB with 49,152 tokens, 84 with 262,144."""
    return 50 * MIB + 160 * shape.vocabulary


def largest_context(
    shape: ModelShape,
    ram_bytes: int,
    *,
    streams: int,
    kv_type: KvType = "f16",
    gpu_layers: int = 0,
    batch_tokens: int = BATCH_TOKENS,
    vram_bytes: int | None = None,
    at_most: int | None = None,
) -> int:
    """The longest context per stream, in tokens, with which the model fits `ram_bytes` and `vram_bytes`
    (None: not asked), a multiple of 256; 0 if it fits with none. Not more than `at_most`, which is the
    trained context if absent."""
    ceiling = at_most or shape.trained_context or CELL_STEP

    def fits(steps: int) -> bool:
        need = estimate(
            shape,
            context_tokens=steps * CELL_STEP,
            streams=streams,
            kv_type=kv_type,
            gpu_layers=gpu_layers,
            batch_tokens=batch_tokens,
        )
        return need.ram <= ram_bytes and (vram_bytes is None or need.vram <= vram_bytes)

    return CELL_STEP * _largest(ceiling // CELL_STEP, fits)


def layers_that_fit(
    shape: ModelShape,
    vram_bytes: int,
    *,
    context_tokens: int,
    streams: int,
    kv_type: KvType = "f16",
    batch_tokens: int = BATCH_TOKENS,
) -> int:
    """How many layers fit the graphics memory with their part of the KV cache, the output counted as one:
    what `gpu_layers` should be."""

    def fits(count: int) -> bool:
        need = estimate(
            shape,
            context_tokens=context_tokens,
            streams=streams,
            kv_type=kv_type,
            gpu_layers=count,
            batch_tokens=batch_tokens,
        )
        return need.vram <= vram_bytes

    return _largest(len(shape.layers) + 1, fits)


def _largest(most: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `most` that fits, given that all smaller ones fit too; 0 if none does."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _padded(cells: int) -> int:
    return -(-cells // CELL_STEP) * CELL_STEP
