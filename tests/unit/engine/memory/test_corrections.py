"""Estimates that learn from what was measured."""

import asyncio
import dataclasses
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laya_desktop.core.types import LoadSpec, MemoryEstimate
from laya_desktop.engine.memory.corrections import Corrections, CorrectionsFile, Settings, fingerprint
from laya_desktop.engine.memory.shape import LayerShape, ModelShape

MIB = 1 << 20
NEED = MemoryEstimate(weights=100 * MIB, repacked=10 * MIB, kv=40 * MIB, compute=10 * MIB, base=50 * MIB)
CERTAIN = 160 * MIB
SETTINGS = Settings(context_tokens=4096, streams=1)
SHAPE = ModelShape(
    backend="gguf",
    architecture="llama",
    layers=(LayerShape(weights=1000, kv_heads=2, key_length=64, value_length=64),),
    embedding=64,
    feed_forward=128,
    heads_width=64,
    vocabulary=100,
    input_bytes=1000,
    output_bytes=10,
    tied_output=True,
    file_bytes=2000,
)


def learnt(*peaks: int, settings: Settings = SETTINGS, need: MemoryEstimate = NEED) -> Corrections:
    corrections = Corrections()
    for peak in peaks:
        corrections.learn("m", settings, need, peak)
    return corrections


def test_without_a_measurement_nothing_changes() -> None:
    assert Corrections().correct("m", SETTINGS, NEED) == NEED
    assert learnt(230 * MIB).correct("other", SETTINGS, NEED) == NEED


def test_the_worker_itself_is_what_is_learnt() -> None:
    corrected = learnt(230 * MIB).correct("m", SETTINGS, NEED)
    assert corrected == msgspec.structs.replace(NEED, base=70 * MIB)
    assert corrected.ram == 230 * MIB
    assert learnt(200 * MIB).correct("m", SETTINGS, NEED).base == 40 * MIB


def test_the_largest_of_the_last_five_loads_counts() -> None:
    peaks = [300 * MIB, *(200 * MIB + step for step in range(5))]
    assert learnt(*peaks[:5]).correct("m", SETTINGS, NEED).ram == 300 * MIB
    assert learnt(*peaks).correct("m", SETTINGS, NEED).ram == 200 * MIB + 4


@given(st.lists(st.integers(min_value=0, max_value=1 << 43), max_size=8))
def test_never_below_what_is_certain(peaks: list[int]) -> None:
    corrected = learnt(*peaks).correct("m", SETTINGS, NEED)
    assert corrected.ram >= CERTAIN + NEED.base // 2
    assert (corrected.weights, corrected.kv, corrected.compute) == (NEED.weights, NEED.kv, NEED.compute)


def test_memory_that_was_shared_says_nothing() -> None:
    assert learnt(CERTAIN - 1, CERTAIN).correct("m", SETTINGS, NEED) == NEED


def test_other_settings_of_the_same_model_help_until_these_were_measured() -> None:
    corrections = learnt(240 * MIB)
    long = Settings(context_tokens=8192, streams=1)
    larger = msgspec.structs.replace(NEED, kv=80 * MIB)
    assert corrections.correct("m", long, larger).base == 80 * MIB
    corrections.learn("m", long, larger, 260 * MIB)
    assert corrections.correct("m", long, larger).base == 60 * MIB
    assert corrections.correct("m", SETTINGS, NEED).base == 80 * MIB


def test_an_estimate_that_is_not_exact_only_grows() -> None:
    unsure = msgspec.structs.replace(NEED, exact=False)
    assert learnt(170 * MIB).correct("m", SETTINGS, unsure) == unsure
    assert learnt(300 * MIB).correct("m", SETTINGS, unsure).ram == 300 * MIB


def test_graphics_memory_only_grows_and_only_where_there_is_some() -> None:
    offloaded = msgspec.structs.replace(NEED, gpu_weights=500 * MIB, gpu_kv=50 * MIB, gpu_compute=20 * MIB)
    corrections = Corrections()
    corrections.learn("m", SETTINGS, offloaded, 230 * MIB, gpu_peak=600 * MIB)
    assert corrections.correct("m", SETTINGS, offloaded).vram == 600 * MIB
    assert corrections.correct("m", SETTINGS, NEED).vram == 0
    corrections.learn("m", SETTINGS, offloaded, 230 * MIB, gpu_peak=100 * MIB)
    assert corrections.correct("m", SETTINGS, offloaded).vram == 600 * MIB


def test_models_and_settings_are_bounded() -> None:
    corrections = Corrections()
    for number in range(250):
        corrections.learn(f"m{number}", SETTINGS, NEED, 230 * MIB)
    for context in range(256, 256 * 40, 256):
        corrections.learn("m249", Settings(context_tokens=context, streams=1), NEED, 230 * MIB)
    data = msgspec.json.decode(corrections.encode())
    assert len(data) == 200
    assert "m0" not in data
    assert len(data["m249"]) == 8


def test_a_fingerprint_is_of_what_memory_depends_on() -> None:
    assert fingerprint(SHAPE) == fingerprint(dataclasses.replace(SHAPE))
    assert fingerprint(SHAPE) != fingerprint(dataclasses.replace(SHAPE, vocabulary=101))


def test_settings_of_a_load() -> None:
    spec = LoadSpec(
        name="m", backend="gguf", path="p", context_tokens=4096, max_streams=1, threads=8, kv_type="q8_0"
    )
    assert Settings.of(spec) == Settings(context_tokens=4096, streams=1, kv_type="q8_0")


def test_measurements_outlive_the_app(tmp_path: Path) -> None:
    file = CorrectionsFile(tmp_path / "memory.json")
    file.load()
    file.corrections.learn("m", SETTINGS, NEED, 230 * MIB)
    asyncio.run(file.save())
    again = CorrectionsFile(tmp_path / "memory.json")
    again.load()
    assert again.corrections.correct("m", SETTINGS, NEED).ram == 230 * MIB
    (tmp_path / "memory.json").unlink()
    asyncio.run(file.save())  # nothing new, nothing written
    assert not (tmp_path / "memory.json").exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"m": [{"settings": 1}]}', b"\xff\x00"])
def test_a_damaged_file_is_set_aside(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "memory.json"
    path.write_bytes(content)
    file = CorrectionsFile(path)
    file.load()
    assert file.corrections.correct("m", SETTINGS, NEED) == NEED
    assert not path.exists()
    assert path.with_suffix(".damaged").read_bytes() == content
    file.corrections.learn("m", SETTINGS, NEED, 230 * MIB)
    asyncio.run(file.save())
    assert path.exists()


def test_numbers_that_make_no_sense_are_left_out() -> None:
    corrections = learnt(230 * MIB)
    data = msgspec.json.decode(corrections.encode())
    data["negative"] = [data["m"][0] | {"base": [-1]}]
    data["empty"] = [data["m"][0] | {"base": []}]
    corrections.decode(msgspec.json.encode(data))
    assert list(msgspec.json.decode(corrections.encode())) == ["m"]
