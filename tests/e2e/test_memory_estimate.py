"""Estimates beside what llama.cpp logs when a worker loads the same model with the same settings."""

import re
from pathlib import Path

import pytest

from laya_desktop.backends.llama_native import BATCH_TOKENS, Model
from laya_desktop.engine.memory import estimate as memory
from laya_desktop.engine.memory.shape import read_shape

pytestmark = [pytest.mark.model, pytest.mark.slow]

LOGGED_DIGITS = 0.005
"""Half of the last digit that llama.cpp prints of a size in MiB."""


def allocations(
    capfd: pytest.CaptureFixture[str], path: Path, context: int, streams: int
) -> dict[str, float]:
    """MiB of every kind of buffer that llama.cpp says it made."""
    capfd.readouterr()
    model = Model(
        str(path),
        context_tokens=context,
        sequences=streams,
        threads=1,
        gpu_layers=0,
        on_progress=lambda fraction: None,
    )
    model.close()
    sizes: dict[str, float] = {}
    for name, kind, size in re.findall(r"(\S+) +(\S+) buffer size = +([\d.]+) MiB", capfd.readouterr().err):
        label = name if kind == "model" else kind
        sizes[label] = sizes.get(label, 0.0) + float(size)
    return sizes


def check(capfd: pytest.CaptureFixture[str], path: Path, context: int, streams: int) -> dict[str, float]:
    logged = allocations(capfd, path, context, streams)
    shape = read_shape(path, "gguf")
    need = memory.estimate(shape, context_tokens=context, streams=streams, batch_tokens=BATCH_TOKENS)
    compute = memory.compute_bytes(shape, context_tokens=context, streams=streams, batch_tokens=BATCH_TOKENS)
    estimated = {
        "CPU_Mapped": need.weights,
        "CPU_REPACK": need.repacked,
        "output": memory.output_bytes(shape, streams),
        "KV": need.kv,
        "compute": compute,
    }
    for label, size in estimated.items():
        assert size / memory.MIB == pytest.approx(logged.get(label, 0.0), abs=2 * LOGGED_DIGITS), label
    assert set(logged) <= set(estimated)
    return logged


@pytest.mark.parametrize(("context", "streams"), [(512, 1), (8192, 1), (1000, 3), (4096, 4)])
def test_every_allocation_of_the_starter_model(
    capfd: pytest.CaptureFixture[str], starter_model: Path, context: int, streams: int
) -> None:
    logged = check(capfd, starter_model, context, streams)
    if (context, streams) == (8192, 1):
        assert logged["KV"] == 180.0


@pytest.mark.parametrize(("context", "streams"), [(512, 1), (32_768, 1), (2048, 3)])
def test_every_allocation_of_a_model_with_windows(
    capfd: pytest.CaptureFixture[str], gemma_model: Path, context: int, streams: int
) -> None:
    logged = check(capfd, gemma_model, context, streams)
    if (context, streams) == (32_768, 1):
        assert logged["KV"] == 576.0
