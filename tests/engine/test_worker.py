"""A worker without an engine that is well: whatever comes through its pipe, it ends."""

import json
import subprocess
from collections.abc import Iterator
from typing import BinaryIO

import pytest

from laya_desktop.core.types import LoadSpec
from laya_desktop.worker.process import worker_command
from laya_desktop.worker.protocol import HEADER, MAX_FRAME_BYTES, Load, Shutdown, pack

DEADLINE_S = 15.0


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        worker_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with process:
        yield process
        process.kill()


def load(**script: object) -> bytes:
    spec = LoadSpec(
        name="m", backend="fake", path=json.dumps(script), context_tokens=256, max_streams=1, threads=1
    )
    return pack(Load(spec))


def pipe(stream: BinaryIO | None) -> BinaryIO:
    assert stream is not None
    return stream


@pytest.mark.parametrize("cut", [0, 2, HEADER.size, HEADER.size + 3])
def test_an_engine_that_dies_in_the_middle_of_a_frame_takes_the_worker_along(
    worker: subprocess.Popen[bytes], cut: int
) -> None:
    stdin = pipe(worker.stdin)
    stdin.write(load() + load()[:cut])
    stdin.flush()
    assert pipe(worker.stdout).read(HEADER.size)  # it has loaded, and waits
    stdin.close()
    assert worker.wait(DEADLINE_S) == 0


@pytest.mark.parametrize(
    "junk", [HEADER.pack(MAX_FRAME_BYTES + 1), HEADER.pack(3) + b"abc", pack(Shutdown())[:-1] + b"\xc1"]
)
def test_a_worker_ends_at_what_is_no_command(worker: subprocess.Popen[bytes], junk: bytes) -> None:
    stdin = pipe(worker.stdin)
    stdin.write(load() + junk)
    stdin.flush()  # and the pipe stays open
    assert worker.wait(DEADLINE_S) == 0


def test_a_worker_that_is_busy_in_native_code_ends_too(worker: subprocess.Popen[bytes]) -> None:
    stdin = pipe(worker.stdin)
    stdin.write(load(load_hangs=True) + load()[:9])
    stdin.close()
    assert worker.wait(DEADLINE_S) == 0
