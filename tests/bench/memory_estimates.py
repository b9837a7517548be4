"""What models were estimated to need, beside what their workers needed at most.

Every row loads a model in a worker as the app does, fills the context of all its streams with a prompt, and
takes the largest proportional set size seen meanwhile. The contexts of real models are short, so that the
table takes less than three minutes on two cores; a model of random weights, with few and narrow layers but
many KV heads, has a large cache that is filled quickly.
"""

import asyncio
import contextlib
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import psutil

from laya_desktop.core.events import TERMINAL, Finished
from laya_desktop.core.types import KvType, LoadSpec, MemoryEstimate, Message, Role, Sampling
from laya_desktop.engine.memory.estimate import MIB, estimate
from laya_desktop.engine.memory.shape import read_shape
from laya_desktop.worker.process import WorkerProcess
from laya_desktop.worker.protocol import Events, Generate, Load, Loaded, LoadFailed, Report

BOUND_SHARE, BOUND_BYTES = 0.05, 64 * MIB
_SAMPLE_S = 0.1
_ONE_TOKEN = Sampling(temperature=0, max_tokens=1)
_RESERVED_TOKENS = 8
_TIMEOUT_S = 240
_TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"


@dataclass(frozen=True)
class Case:
    model: str
    context_tokens: int
    streams: int
    kv_type: KvType


CASES = (
    Case("smollm2", 512, 1, "f16"),
    Case("smollm2", 1536, 1, "f16"),
    Case("smollm2", 512, 4, "f16"),
    Case("gemma", 512, 1, "f16"),
    Case("gemma", 768, 2, "f16"),
    Case("random", 4096, 2, "f16"),
    Case("random", 12_288, 1, "f16"),
)


def main(model: Path, gemma: Path) -> bool:
    """Print one row for each case; False if one is beyond the bound."""
    good = True
    with tempfile.TemporaryDirectory() as folder:
        files = {
            "smollm2": model,
            "gemma": gemma,
            "random": write_random(Path(folder) / "random.gguf", model),
        }
        for case in CASES:
            need = estimate_of(files[case.model], case)
            peak = asyncio.run(measure(files[case.model], case, Path(folder)))
            row = _row(case, need, peak)
            good &= abs(row["error_mib"]) * MIB <= max(BOUND_SHARE * peak, BOUND_BYTES)
            print(json.dumps(row), flush=True)
    return good


def estimate_of(file: Path, case: Case) -> MemoryEstimate:
    return estimate(
        read_shape(file, "gguf"),
        context_tokens=case.context_tokens,
        streams=case.streams,
        kv_type=case.kv_type,
    )


def _row(case: Case, need: MemoryEstimate, peak: int) -> dict[str, object]:
    error = need.ram - peak
    return {
        "bench": "memory",
        "figure": "estimate",
        "model": case.model,
        "context": case.context_tokens,
        "streams": case.streams,
        "kv_type": case.kv_type,
        "value": round(need.ram / MIB, 1),
        "unit": "MiB",
        "n": 1,
        "measured_peak_pss": round(peak / MIB, 1),
        "error_mib": round(error / MIB, 1),
        "error_percent": round(100 * error / peak, 1),
        "parts": {
            name: round(getattr(need, name) / MIB, 1)
            for name in ("weights", "repacked", "kv", "compute", "base")
        },
    }


async def measure(file: Path, case: Case, folder: Path) -> int:
    """The largest proportional set size, in bytes, of a worker that fills the context of all its streams."""
    loaded: asyncio.Future[Report] = asyncio.get_running_loop().create_future()
    ended: asyncio.Queue[object] = asyncio.Queue()

    def on_report(report: Report) -> None:
        if isinstance(report, Loaded | LoadFailed):
            loaded.set_result(report)
        elif isinstance(report, Events):
            for item in report.items:
                if isinstance(item.event, TERMINAL):
                    ended.put_nowait(item.event)

    worker = WorkerProcess(case.model, folder / f"{case.model}.log", on_report, ended.put_nowait)
    await worker.start()
    assert worker.pid is not None
    peak = _Peak(psutil.Process(worker.pid))
    sampling = asyncio.create_task(peak.watch())
    try:
        worker.send(Load(_spec(file, case)))
        if not isinstance(report := await asyncio.wait_for(loaded, _TIMEOUT_S), Loaded):
            raise SystemExit(f"{case.model} did not load: {report}")
        for stream in range(case.streams):
            text = f"{stream}" + " the" * (case.context_tokens - _RESERVED_TOKENS)
            worker.send(Generate(f"r{stream}", (Message(Role.USER, text),), _ONE_TOKEN))
        for _ in range(case.streams):
            event = await asyncio.wait_for(ended.get(), _TIMEOUT_S)
            if not isinstance(event, Finished):
                raise SystemExit(f"{case.model} did not answer: {event}")
        peak.sample()
    finally:
        sampling.cancel()
        await worker.stop()
    return peak.bytes


class _Peak:
    """The largest proportional set size of a process."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self.bytes = 0

    def sample(self) -> None:
        with contextlib.suppress(psutil.Error):
            self.bytes = max(self.bytes, int(self._process.memory_full_info().pss))

    async def watch(self) -> None:
        while True:
            self.sample()
            await asyncio.sleep(_SAMPLE_S)


def _spec(file: Path, case: Case) -> LoadSpec:
    return LoadSpec(
        name=case.model,
        backend="gguf",
        path=str(file),
        context_tokens=case.context_tokens,
        max_streams=case.streams,
        threads=psutil.cpu_count(logical=False) or 1,
        kv_type=case.kv_type,
        chat_template=_TEMPLATE,
    )


def write_random(path: Path, vocabulary_of: Path) -> Path:
    """A llama of random weights with the tokens of another model: 8 layers of 256, each with 8 KV heads
    of 128. Its cache takes 32 KiB a token, its weights 50 MB."""
    layers, width, inner, heads, length = 8, 256, 512, 8, 128
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(layers)
    writer.add_context_length(65_536)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads)
    writer.add_key_length(length)
    writer.add_value_length(length)
    writer.add_rope_dimension_count(length)
    writer.add_layer_norm_rms_eps(1e-5)
    reader = gguf.GGUFReader(vocabulary_of)
    for name, field in reader.fields.items():
        if name.startswith("tokenizer.ggml."):
            kind = field.types[0]
            writer.add_key_value(
                name, field.contents(), kind, field.types[-1] if len(field.types) > 1 else None
            )
    tokens = len(reader.fields["tokenizer.ggml.tokens"].data)
    random = np.random.default_rng(1)

    def add(name: str, *shape: int) -> None:
        half = random.standard_normal(shape, dtype=np.float32) / 16
        writer.add_tensor(name, half if len(shape) == 1 else half.astype(np.float16))

    add("token_embd.weight", tokens, width)
    add("output_norm.weight", width)
    for layer in range(layers):
        block = f"blk.{layer}."
        add(block + "attn_norm.weight", width)
        add(block + "ffn_norm.weight", width)
        for part in ("q", "k", "v"):
            add(f"{block}attn_{part}.weight", heads * length, width)
        add(block + "attn_output.weight", width, heads * length)
        add(block + "ffn_gate.weight", inner, width)
        add(block + "ffn_up.weight", inner, width)
        add(block + "ffn_down.weight", width, inner)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
