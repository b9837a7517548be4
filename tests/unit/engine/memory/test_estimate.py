"""What models will need, against what llama.cpp logged for the same settings."""

import dataclasses

import pytest

from laya_desktop.core.types import KvType
from laya_desktop.engine.memory.estimate import (
    MIB,
    cells_per_stream,
    compute_bytes,
    estimate,
    kv_type_fits,
    largest_context,
    layer_cache_bytes,
    layers_that_fit,
    output_bytes,
)
from laya_desktop.engine.memory.shape import LayerShape, ModelShape

SMOL = ModelShape(
    backend="gguf",
    architecture="llama",
    layers=(LayerShape(weights=2_216_448, kv_heads=3, key_length=64, value_length=64),) * 30,
    embedding=576,
    feed_forward=1536,
    heads_width=576,
    vocabulary=49_152,
    input_bytes=30_081_024,
    output_bytes=2_304,
    tied_output=True,
    file_bytes=98_362_432,
    trained_context=8192,
)
WINDOWED = LayerShape(weights=1000, repacked=400, kv_heads=1, key_length=256, value_length=256, window=512)
GEMMA = dataclasses.replace(
    SMOL,
    architecture="gemma3",
    layers=tuple(
        dataclasses.replace(WINDOWED, window=0) if index % 6 == 5 else WINDOWED for index in range(18)
    ),
    embedding=640,
    feed_forward=2048,
    heads_width=1024,
    vocabulary=262_144,
    trained_context=32_768,
)


@pytest.mark.parametrize(
    ("shape", "context", "streams", "kv_type", "mebibytes"),
    [
        (SMOL, 512, 1, "f16", 11.25),
        (SMOL, 4096, 1, "f16", 90.0),
        (SMOL, 8192, 1, "f16", 180.0),
        (SMOL, 4096, 4, "f16", 360.0),
        (SMOL, 8192, 1, "q8_0", 95.625),
        (GEMMA, 512, 1, "f16", 9.0),
        (GEMMA, 32_768, 1, "f16", 576.0),
        (GEMMA, 4096, 4, "q4_0", 81.0),
    ],
)
def test_kv_cache_as_llama_cpp_logs_it(
    shape: ModelShape, context: int, streams: int, kv_type: KvType, mebibytes: float
) -> None:
    need = estimate(shape, context_tokens=context, streams=streams, kv_type=kv_type)
    assert need.kv == mebibytes * MIB


def test_a_window_that_is_not_kept_full_saves_cells() -> None:
    # llama.cpp: min(4096, 512 + 512) cells for the 15 layers with a window.
    need = estimate(GEMMA, context_tokens=4096, streams=1, swa_full=False)
    assert need.kv == (3 * 4096 + 15 * 1024) * 2 * 256 * 2


@pytest.mark.parametrize(
    ("context", "streams", "cells"),
    [(256, 1, 256), (257, 1, 512), (300, 4, 512), (1000, 3, 1024), (4096, 4, 4096)],
)
def test_cells_are_padded_before_and_after_the_division(context: int, streams: int, cells: int) -> None:
    assert cells_per_stream(context, streams) == cells


def test_a_recurrent_layer_needs_the_same_for_any_context() -> None:
    layer = LayerShape(weights=0, state=1000)
    short, long = (
        layer_cache_bytes(layer, context_tokens=n, streams=3, kv_type="f16") for n in (256, 65_536)
    )
    assert short == long == 3000


def test_logits_of_every_stream() -> None:
    assert output_bytes(SMOL, 1) == 0.1875 * MIB
    assert output_bytes(GEMMA, 4) == 4 * MIB


def dense(
    embedding: int, feed_forward: int, heads_width: int, *, window: int = 0, experts: int = 0
) -> ModelShape:
    """A model of which only the widths matter."""
    layer = LayerShape(weights=0, kv_heads=4, key_length=128, value_length=128)
    return dataclasses.replace(
        SMOL,
        layers=(layer, dataclasses.replace(layer, window=window)),
        embedding=embedding,
        feed_forward=feed_forward,
        heads_width=heads_width,
        experts_used=experts,
        vocabulary=128_256,
    )


@pytest.mark.parametrize(
    ("shape", "context", "streams", "mebibytes"),
    [
        (SMOL, 512, 1, 14.01),
        (SMOL, 8192, 1, 21.51),
        (SMOL, 4096, 4, 17.51),
        (GEMMA, 32_768, 1, 81.77),
        (GEMMA, 2048, 3, 21.81),
        (dense(4096, 14_336, 4096), 4096, 1, 120.01),  # as Llama 3 8B
        (dense(3584, 18_944, 3584), 512, 1, 139.51),  # as Qwen 2.5 7B
        (dense(2304, 9216, 2048, window=4096), 4096, 4, 79.52),  # as Gemma 2 2B
        (dense(4096, 2 * 14_336, 4096, experts=2), 4096, 1, 204.01),  # as Mixtral 8x7B
        (dense(2048, 8 * 768, 4096, experts=8), 512, 1, 88.51),  # as Qwen 3 30B A3B
    ],
)
def test_compute_buffer_as_llama_cpp_logs_it(
    shape: ModelShape, context: int, streams: int, mebibytes: float
) -> None:
    size = compute_bytes(shape, context_tokens=context, streams=streams)
    assert size / MIB == pytest.approx(mebibytes, abs=0.02)


@pytest.mark.parametrize(
    ("shape", "streams", "kv_type", "mebibytes"),
    [
        (SMOL, 1, "q8_0", 20.42),
        (GEMMA, 4, "q4_0", 26.30 + 8),
        (dense(4096, 14_336, 4096), 1, "q8_0", 116.09),
        (dense(2304, 9216, 2048, window=4096), 1, "q8_0", 92.05),
    ],
)
def test_compute_buffer_of_a_quantised_cache_is_hardly_less_than_logged(
    shape: ModelShape, streams: int, kv_type: KvType, mebibytes: float
) -> None:
    size = compute_bytes(shape, context_tokens=8192, streams=streams, kv_type=kv_type)
    assert mebibytes - 0.3 < size / MIB < 1.1 * mebibytes


def test_many_streams_need_room_for_their_logits() -> None:
    # llama.cpp logged 39.28 MiB for a model as Qwen 2.5 0.5B with 64 streams of 512 tokens.
    shape = dataclasses.replace(dense(896, 4864, 896), vocabulary=151_936)
    assert compute_bytes(shape, context_tokens=512, streams=64) / MIB == pytest.approx(39.28, abs=0.2)


def test_layers_on_the_gpu_are_the_last_ones_and_the_output_goes_first() -> None:
    cpu = estimate(GEMMA, context_tokens=4096, streams=1)
    assert cpu.vram == 0
    assert cpu.repacked == 18 * 400
    output = estimate(GEMMA, context_tokens=4096, streams=1, gpu_layers=1)
    assert output.gpu_weights == GEMMA.output_bytes + GEMMA.input_bytes
    assert output.gpu_kv == 0
    three = estimate(GEMMA, context_tokens=4096, streams=1, gpu_layers=3)
    assert three.gpu_kv == 2 * cpu.kv // 18
    assert three.kv == 16 * cpu.kv // 18
    assert three.repacked == 16 * 400
    everything = estimate(GEMMA, context_tokens=4096, streams=1, gpu_layers=-1)
    assert everything == estimate(GEMMA, context_tokens=4096, streams=1, gpu_layers=19)
    assert (everything.kv, everything.weights) == (0, GEMMA.input_bytes)


def test_the_largest_context_is_one_that_fits_and_the_next_does_not() -> None:
    room = 300 * MIB
    context = largest_context(SMOL, room, streams=2)
    assert context % 256 == 0
    assert estimate(SMOL, context_tokens=context, streams=2).ram <= room
    assert estimate(SMOL, context_tokens=context + 256, streams=2).ram > room
    assert largest_context(SMOL, 50 * MIB, streams=1) == 0
    assert largest_context(SMOL, 1 << 40, streams=1) == 8192
    assert largest_context(SMOL, 1 << 40, streams=1, at_most=10**9) > 1_000_000


def test_as_many_layers_as_the_graphics_memory_holds() -> None:
    room = 100 * MIB
    count = layers_that_fit(SMOL, room, context_tokens=4096, streams=1)
    assert 0 < count < 31
    assert estimate(SMOL, context_tokens=4096, streams=1, gpu_layers=count).vram <= room
    assert estimate(SMOL, context_tokens=4096, streams=1, gpu_layers=count + 1).vram > room
    assert layers_that_fit(SMOL, 1 << 40, context_tokens=4096, streams=1) == 31
    assert layers_that_fit(SMOL, MIB, context_tokens=4096, streams=1) == 0


def test_blocks_of_a_quantised_cache_must_not_cross_heads() -> None:
    assert kv_type_fits(SMOL, "q8_0")
    odd = dataclasses.replace(
        SMOL, layers=(LayerShape(weights=0, kv_heads=2, key_length=80, value_length=80),)
    )
    assert kv_type_fits(odd, "f16")
    assert not kv_type_fits(odd, "q4_0")
