"""Every way in which a model file can be unusable has a cause of its own, found quickly and without trust."""

import os
import struct
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.engine import gguf_header
from laya_desktop.engine.catalog import inspect_model, model_parts
from laya_desktop.engine.gguf_header import read_header

STRING, ARRAY, U32 = 8, 9, 4


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def head(version: int = 3, tensors: int = 0, pairs: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, pairs)


def pair(key: bytes, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def array(kind: int, count: int) -> bytes:
    return pair(b"k", ARRAY, struct.pack("<IQ", kind, count))


def tensor(name: bytes, *shape: int, kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


LLAMA = pair(b"general.architecture", STRING, text(b"llama"))


def write_model(path: Path, architecture: str = "llama", **settings: int | str) -> Path:
    """A small file that is right in every way: 96 parameters in two tensors, a vocabulary of 1,000 words."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(2048)
    writer.add_name("Tiny")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_token_list([f"word{index}" for index in range(1000)])
    writer.add_token_scores([0.5] * 1000)
    writer.add_array("small", [1, 2, 3])
    writer.add_chat_template("{{ messages }}")
    for key, value in settings.items():
        name = key.replace("__", ".")
        if isinstance(value, int):
            writer.add_uint32(name, value)
        else:
            writer.add_string(name, value)
    writer.add_tensor("a", np.zeros((2, 32), dtype=np.float32))
    writer.add_tensor("b", np.zeros(32, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_part(path: Path, number: int, count: int) -> Path:
    """As the splitting tool does it: only the first part holds the metadata."""
    pairs = pair(b"split.no", 2, struct.pack("<H", number)) + pair(
        b"split.count", 2, struct.pack("<H", count)
    )
    pairs = (LLAMA if number == 0 else b"") + pairs
    content = head(tensors=1, pairs=3 if number == 0 else 2) + pairs + tensor(b"t%d" % number, 32)
    content += bytes(-len(content) % 32) + bytes(128 + 32 * number)
    path.write_bytes(content)
    return path


def failure(path: Path) -> LayaError:
    with pytest.raises(LayaError) as caught:
        inspect_model(path)
    return caught.value


# Good files


def test_what_a_file_says_of_itself(tmp_path: Path) -> None:
    path = write_model(tmp_path / "tiny.gguf")
    info = inspect_model(path)
    assert info.architecture == "llama"
    assert info.size_bytes == path.stat().st_size
    assert info.parameters == 96
    assert info.quantization == "Q8_0"
    assert info.trained_context == 2048
    assert info.has_chat_template
    assert info.title == "Tiny"


def test_long_arrays_are_passed_over(tmp_path: Path) -> None:
    header = read_header(write_model(tmp_path / "tiny.gguf"))
    assert "tokenizer.ggml.tokens" not in header.metadata
    assert header.metadata["small"] == (1, 2, 3)
    assert [tensor.shape for tensor in header.tensors] == [(32, 2), (32,)]


def test_quantization_without_a_file_type(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    content = head(tensors=2, pairs=1) + LLAMA + tensor(b"a", 256, kind=12) + tensor(b"b", 4, offset=160)
    path.write_bytes(content + bytes(300))
    assert inspect_model(path).quantization == "Q4_K"


def test_tensor_types_agree_with_the_format_library() -> None:
    for kind, (block, size) in gguf.GGML_QUANT_SIZES.items():
        if kind != gguf.GGMLQuantizationType.Q8_1:  # the library has the size of an older layout
            assert gguf_header.TENSOR_TYPES[kind] == (kind.name, block, size)


def test_the_starter_model(starter_model: Path) -> None:
    start = time.process_time()
    info = inspect_model(starter_model)
    assert time.process_time() - start < 0.1
    assert info.architecture == "llama"
    assert info.size_bytes == starter_model.stat().st_size
    assert info.parameters == 134_515_008
    assert info.has_chat_template


def test_a_large_vocabulary(gemma_model: Path) -> None:
    start = time.process_time()
    info = inspect_model(gemma_model)
    assert time.process_time() - start < 0.1
    assert (info.architecture, info.has_chat_template) == ("gemma3", False)


# Broken files

PAGE = b"\n<!DOCTYPE html><html><head><title>404</title></head></html>"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 98362432\n"
BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the file is empty"),
    "magic only": (b"GGUF", "truncated: at least 4 bytes missing"),
    "half a magic": (b"GG", "truncated: at least 6 bytes missing"),
    "old format": (b"GGML" + bytes(60), "not a GGUF file: it has the older GGML format"),
    "page": (PAGE, "not a GGUF file: it looks like an HTML page"),
    "pointer": (POINTER, "not a GGUF file: it is a Git LFS pointer"),
    "anything": (b"PK\x03\x04" + bytes(100), "not a GGUF file"),
    "version 99": (head(99), "GGUF version 99 is not supported"),
    "version 1": (head(1), "GGUF version 1 is not supported"),
    "big-endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "it is a big-endian file, which is not supported"),
    "endless key": (
        head(pairs=1) + struct.pack("<Q", 0xFFFFFFFFFFFF),
        "bad length of a key (281,474,976,710,655",
    ),
    "key of 1 GiB": (head(pairs=1) + struct.pack("<Q", 1 << 30), "bad length of a key (1,073,741,824 bytes)"),
    "many pairs": (head(pairs=1 << 60), "bad number of metadata entries"),
    "many tensors": (head(tensors=1 << 60), "bad number of tensors"),
    "empty key": (head(pairs=1) + pair(b"", U32, bytes(4)), "a metadata entry has an empty key"),
    "key twice": (head(pairs=2) + LLAMA + LLAMA, "the key 'general.architecture' appears twice"),
    "unknown value": (head(pairs=1) + pair(b"k", 77, b""), "unknown type of a metadata value (77)"),
    "long text": (head(pairs=1) + pair(b"k", STRING, struct.pack("<Q", 1 << 50)), "bad length of a text"),
    "nested array": (head(pairs=1) + array(ARRAY, 1), "unknown type of an array (9)"),
    "long array": (head(pairs=1) + array(U32, 1 << 60), "bad length of an array"),
    "many strings": (head(pairs=1) + array(STRING, 5_000_000), "bad length of an array"),
    "bad string": (
        head(pairs=1) + array(STRING, 1000) + struct.pack("<Q", (1 << 64) - 1),
        "bad length of a text in an array",
    ),
    "bad alignment": (head(pairs=1) + pair(b"general.alignment", U32, b"\3\0\0\0"), "bad alignment (3)"),
    "zero dimension": (head(tensors=1) + tensor(b"t", 32, 0), "tensor 't' has a zero dimension"),
    "five dimensions": (head(tensors=1) + tensor(b"t", 1, 1, 1, 1, 1), "tensor 't' has 5 dimensions"),
    "unknown tensor": (head(tensors=1) + tensor(b"t", 32, kind=4), "has a type that is not supported (4)"),
    "partial block": (head(tensors=1) + tensor(b"t", 33, kind=2), "tensor 't' has a bad size"),
    "huge tensor": (head(tensors=1) + tensor(b"t", 1 << 40, 1 << 40), "tensor 't' has a bad size"),
    "no architecture": (head(), "it does not name its architecture"),
    "unknown architecture": (
        head(pairs=1) + LLAMA.replace(b"llama", b"zzzzz"),
        "architecture 'zzzzz' is not supported",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_fault_has_its_cause(tmp_path: Path, name: str) -> None:
    content, cause = BROKEN[name]
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    tracemalloc.start()
    start = time.process_time()
    error = failure(path).info
    seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert error.code is ErrorCode.MODEL_LOAD_FAILED
    assert error.message.startswith("x.gguf: ")
    assert cause in error.message
    assert seconds < 0.1
    assert peak < 64_000_000


@pytest.mark.parametrize(
    ("cut", "cause"),
    [
        (lambda size: size - 1, "truncated: 1 bytes missing"),
        (lambda size: size // 2, "truncated: at least"),
        (lambda _: 1000, "truncated: at least"),
    ],
)
def test_cut_files(tmp_path: Path, cut: Callable[[int], int], cause: str) -> None:
    path = write_model(tmp_path / "x.gguf")
    os.truncate(path, cut(path.stat().st_size))
    assert cause in failure(path).info.message


def test_half_of_the_starter_model(starter_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "half.gguf"
    size = starter_model.stat().st_size
    with starter_model.open("rb") as source:
        path.write_bytes(source.read(4_000_000))
    os.truncate(path, size // 2)
    assert f"truncated: {size - size // 2:,} bytes missing" in failure(path).info.message


def test_a_header_beyond_the_first_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_model(tmp_path / "x.gguf")
    monkeypatch.setattr(gguf_header, "_WINDOWS", (1000, 48_000_000))
    assert inspect_model(path).parameters == 96
    monkeypatch.setattr(gguf_header, "_WINDOWS", (1000, 10_000))
    assert "its header is larger than" in failure(path).info.message


def test_memory_stays_bounded_for_a_large_header(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    with path.open("wb") as file:
        file.write(head(pairs=2) + LLAMA + array(U32, 11_000_000))
        file.truncate(60_000_000)
    tracemalloc.start()
    inspect_model(path)
    assert tracemalloc.get_traced_memory()[1] < 64_000_000
    tracemalloc.stop()


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.gguf"
    path.write_bytes(head(pairs=2, tensors=1) + data)
    failure(path)


@settings(max_examples=300)
@given(position=st.integers(4, 2000), value=st.integers(0, 255))
def test_no_flipped_byte_raises_anything_else(
    tmp_path_factory: pytest.TempPathFactory, position: int, value: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "flip.gguf"
    if not path.exists():
        write_model(path)
    content = bytearray(path.read_bytes())
    content[position] = value
    flipped = path.with_name("flipped.gguf")
    flipped.write_bytes(content)
    with suppress(LayaError):
        inspect_model(flipped)


# Files that are not there


def test_missing(tmp_path: Path) -> None:
    error = failure(tmp_path / "gone.gguf").info
    assert error.code is ErrorCode.MODEL_FILE_MISSING
    assert error.message == f"{tmp_path / 'gone.gguf'}: there is no such file."


def test_dangling_symlink(tmp_path: Path) -> None:
    link = tmp_path / "x.gguf"
    link.symlink_to(tmp_path / "gone.gguf")
    error = failure(link).info
    assert error.code is ErrorCode.MODEL_FILE_MISSING
    assert f"it points to {tmp_path / 'gone.gguf'}, which is missing" in error.message


def test_a_symlink_is_followed(tmp_path: Path) -> None:
    link = tmp_path / "link.gguf"
    link.symlink_to(write_model(tmp_path / "x.gguf"))
    assert inspect_model(str(link)).parameters == 96


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").mkdir()
    error = failure(tmp_path / "x.gguf").info
    assert error.code is ErrorCode.MODEL_FILE_MISSING
    assert "it is a folder" in error.message


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs on this system")
def test_a_fifo_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "y.gguf")
    error = failure(tmp_path / "y.gguf").info
    assert error.code is ErrorCode.MODEL_FILE_MISSING
    assert "it is not a regular file" in error.message


def test_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_model(tmp_path / "x.gguf")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    error = failure(path).info
    assert error.code is ErrorCode.MODEL_FILE_MISSING
    assert error.message == f"{path}: it cannot be read: no permission."


def test_works_again_once_it_is_back(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    failure(path)
    write_model(path)
    assert inspect_model(path).parameters == 96


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 5000])
def test_impossible_paths(path: str) -> None:
    assert failure(Path(path)).info.code is ErrorCode.MODEL_FILE_MISSING


# Split models


@pytest.fixture
def family(tmp_path: Path) -> list[Path]:
    return [write_part(tmp_path / f"Big-{number + 1:05}-of-00003.gguf", number, 3) for number in range(3)]


@pytest.mark.parametrize("picked", [0, 1, 2])
def test_a_split_model_is_one_model(family: list[Path], picked: int) -> None:
    assert model_parts(family[picked]) == tuple(family)
    info = inspect_model(family[picked])
    assert info.size_bytes == sum(part.stat().st_size for part in family)
    assert info.parameters == 96
    assert info.architecture == "llama"


def test_a_missing_part(family: list[Path]) -> None:
    family[1].unlink()
    for picked in (family[0], family[2]):
        error = failure(picked).info
        assert error.code is ErrorCode.MODEL_FILE_MISSING
        assert "part 2 of 3 missing" in error.message
        assert "Big-00002-of-00003.gguf" in error.hint


def test_a_cut_part(family: list[Path]) -> None:
    os.truncate(family[2], family[2].stat().st_size - 100)
    assert "Big-00003-of-00003.gguf: truncated: 36 bytes missing" in failure(family[0]).info.message


def test_a_lone_part(tmp_path: Path) -> None:
    path = write_part(tmp_path / "Other-00002-of-00002.gguf", 1, 2)
    assert "part 1 of 2 missing" in failure(path).info.message


def test_an_impossible_part(tmp_path: Path) -> None:
    path = write_part(tmp_path / "X-00003-of-00002.gguf", 1, 2)
    assert "part 3 of 2 is impossible" in failure(path).info.message


def test_a_renamed_part(family: list[Path]) -> None:
    assert (
        "one part of a split model" in failure(family[0].rename(family[0].with_name("y.gguf"))).info.message
    )


def test_pieces_must_be_joined(tmp_path: Path) -> None:
    path = tmp_path / "X.gguf.part1of2"
    path.write_bytes(b"GGUF")
    assert "Join the parts first" in failure(path).info.sentence()


def test_neighbours_are_not_mixed_up(tmp_path: Path) -> None:
    first, second = write_model(tmp_path / "a.gguf"), write_model(tmp_path / "b.gguf", architecture="qwen2")
    assert model_parts(first) == (first,)
    assert (inspect_model(first).architecture, inspect_model(second).architecture) == ("llama", "qwen2")


# Files that are no chat models


def test_a_projector(tmp_path: Path) -> None:
    assert "a projector (mmproj)" in failure(write_model(tmp_path / "mmproj-x.gguf", "clip")).info.message


def test_embedding_models(tmp_path: Path) -> None:
    assert "an embedding model" in failure(write_model(tmp_path / "e.gguf", "nomic-bert")).info.message
    pooled = write_model(tmp_path / "p.gguf", "qwen3", qwen3__pooling_type=3)
    assert "an embedding model" in failure(pooled).info.message
