"""The header of a GGUF file, read without a native library and without trusting a single length in it.

The library answers "failed to load" to whatever is wrong with a file; this module says what it is.
"""

import struct
from collections import Counter
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import BinaryIO, NoReturn

from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.engine.gguf_tables import FILE_TYPES, TENSOR_TYPES

_WINDOWS = (8_000_000, 48_000_000)
"""Bytes of a file to look at: the second is for vocabularies that do not fit the first. Files are read, not
mapped: touching a mapped page of a file that was cut in the meantime kills the process."""
_VERSIONS = (2, 3)
_MAX_KEY = 65_535
_MAX_STRING = 16_000_000
_MAX_PAIRS = 10_000
_MAX_TENSORS = 20_000
_MAX_SKIPPED = 1_000_000
"""Strings in long arrays, all together: what can be passed over in a tenth of a second."""
_MAX_KEPT = 512
_MAX_DIMENSIONS = 4
_HEADER_SIZE = 24

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")

Scalar = int | float | str


@dataclass(frozen=True)
class Tensor:
    """`type` is the number of its quantization; `offset` counts bytes from the start of the data."""

    name: str
    shape: tuple[int, ...]
    type: int
    offset: int

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def quantization(self) -> str:
        return TENSOR_TYPES[self.type][0]

    @property
    def size_bytes(self) -> int:
        _, block, block_bytes = TENSOR_TYPES[self.type]
        return self.elements // block * block_bytes


@dataclass(frozen=True)
class GgufHeader:
    """`metadata` leaves out arrays of more than 512 items."""

    metadata: dict[str, Scalar | tuple[Scalar, ...]]
    tensors: tuple[Tensor, ...]
    data_start: int
    file_bytes: int

    @property
    def architecture(self) -> str:
        """general.architecture; empty if absent, as in the later parts of a split file."""
        return self.text("general.architecture")

    @property
    def parameters(self) -> int:
        return sum(tensor.elements for tensor in self.tensors)

    @property
    def quantization(self) -> str | None:
        """By general.file_type, else the type of most of the data."""
        named = FILE_TYPES.get(self.number("general.file_type", -1))
        sizes: Counter[str] = Counter()
        for tensor in self.tensors:
            sizes[tensor.quantization] += tensor.size_bytes
        return named or (sizes.most_common(1)[0][0] if sizes else None)

    @property
    def missing_bytes(self) -> int:
        """How much of the tensors' data lies beyond the end of the file."""
        ends = (self.data_start + tensor.offset + tensor.size_bytes for tensor in self.tensors)
        return max(0, max(ends, default=0) - self.file_bytes)

    def text(self, key: str) -> str:
        value = self.metadata.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str, default: int = 0) -> int:
        value = self.metadata.get(key)
        return value if isinstance(value, int) else default


def read_header(path: Path) -> GgufHeader:
    """Read and check the header of a regular file; blocks on the disk.

    Raises LayaError (model_load_failed) with a short cause if this is not a whole GGUF file, and OSError if
    it cannot be read.
    """
    with path.open("rb") as file:
        header = _read(file, path)
    if header.missing_bytes:
        raise unusable(path, f"truncated: {header.missing_bytes:,} bytes missing", "Download it again.")
    return header


class _EndOfWindowError(Exception):
    """The header goes on behind the bytes that are in memory, at least up to `position`."""

    def __init__(self, position: int) -> None:
        self.position = position


def _read(file: BinaryIO, path: Path) -> GgufHeader:
    size = file.seek(0, 2)
    needed = 0
    for window in _WINDOWS:
        file.seek(0)
        data = file.read(window)
        _check_magic(data, path)
        try:
            return _Parser(data, path, size).header()
        except _EndOfWindowError as end:
            needed = end.position
        if size <= window:
            break
    if needed > size:
        raise unusable(path, f"truncated: at least {needed - size:,} bytes missing", "Download it again.")
    raise unusable(path, f"its header is larger than {_WINDOWS[-1] // 1_000_000} MB")


def _check_magic(data: bytes, path: Path) -> None:
    if not data:
        raise unusable(path, "the file is empty", "Download it again.")
    if data[:4] == b"GGUF"[: len(data)]:
        return
    start = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    cause, hint = "not a GGUF file", ""
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        cause, hint = "not a GGUF file: it looks like an HTML page", "The download failed: download it again."
    elif start.startswith(b"version https://git-lfs"):
        cause, hint = "not a GGUF file: it is a Git LFS pointer", "Fetch the file itself with 'git lfs pull'."
    elif data[:4] in (b"GGML", b"lmgg", b"tjgg", b"fmgg"):
        cause, hint = "not a GGUF file: it has the older GGML format", "Convert it, or download a GGUF file."
    raise unusable(path, cause, hint)


def unusable(path: Path, cause: str, hint: str = "") -> LayaError:
    """The error for a file that is there, but is no model that can be loaded."""
    return LayaError(ErrorCode.MODEL_LOAD_FAILED, f"{path.name}: {cause}.", hint=hint)


@dataclass
class _Parser:
    """Goes through the header once, from start to end."""

    _data: bytes
    _path: Path
    _file_bytes: int
    _at: int = 4
    _skipped: int = 0
    _metadata: dict[str, Scalar | tuple[Scalar, ...]] = field(default_factory=dict)
    _keys: set[str] = field(default_factory=set)

    def header(self) -> GgufHeader:
        self._check_version()
        if len(self._data) < _HEADER_SIZE:
            raise _EndOfWindowError(_HEADER_SIZE)
        tensor_count, pair_count = self._u64(), self._u64()
        if tensor_count > _MAX_TENSORS:
            self._fail(f"bad number of tensors ({tensor_count:,})")
        if pair_count > _MAX_PAIRS:
            self._fail(f"bad number of metadata entries ({pair_count:,})")
        for _ in range(pair_count):
            self._pair()
        tensors = tuple(self._tensor() for _ in range(tensor_count))
        alignment = self._metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment <= 0 or alignment & (alignment - 1):
            self._fail(f"bad alignment ({alignment})")
        start = -(-self._at // alignment) * alignment
        return GgufHeader(self._metadata, tensors, start, self._file_bytes)

    def _check_version(self) -> None:
        version = self._u32()
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        if version not in _VERSIONS and swapped in (1, *_VERSIONS):
            self._fail("it is a big-endian file, which is not supported")
        if version not in _VERSIONS:
            self._fail(f"GGUF version {version} is not supported")

    def _pair(self) -> None:
        key = self._key()
        if key in self._keys:
            self._fail(f"the key '{key}' appears twice")
        self._keys.add(key)
        kind = self._u32()
        if kind == _ARRAY:
            self._array(key)
        else:
            self._metadata[key] = self._value(kind)

    def _key(self) -> str:
        length = self._u64()
        if length == 0:
            self._fail("a metadata entry has an empty key")
        if length > _MAX_KEY:
            self._fail(f"bad length of a key ({length:,} bytes)")
        return self._take(length).decode("utf-8", "replace")

    def _value(self, kind: int) -> Scalar:
        if kind == _STRING:
            return self._string()
        if kind not in _SCALARS:
            self._fail(f"unknown type of a metadata value ({kind})")
        code = "<" + _SCALARS[kind]
        value: int | float = struct.unpack(code, self._take(struct.calcsize(code)))[0]
        return value

    def _string(self) -> str:
        length = self._u64()
        if length > _MAX_STRING:
            self._fail(f"bad length of a text ({length:,} bytes)")
        return self._take(length).decode("utf-8", "replace")

    def _array(self, key: str) -> None:
        kind, length = self._u32(), self._u64()
        if kind not in _SCALARS and kind != _STRING:
            self._fail(f"unknown type of an array ({kind})")
        item_bytes = 8 if kind == _STRING else struct.calcsize(_SCALARS[kind])
        if length > _WINDOWS[-1] // item_bytes:
            self._fail(f"bad length of an array ({length:,} items)")
        if length <= _MAX_KEPT:
            self._metadata[key] = tuple(self._value(kind) for _ in range(length))
        elif kind == _STRING:
            self._skip_strings(length)
        else:
            self._skip(length * item_bytes)

    def _skip_strings(self, count: int) -> None:
        """Pass over a vocabulary: a quarter of a million strings in a few hundredths of a second."""
        self._skipped += count
        if self._skipped > _MAX_SKIPPED:
            self._fail(f"bad length of an array ({count:,} items)")
        data, at, length_at = self._data, self._at, _U64.unpack_from
        try:
            for _ in range(count):
                at += 8 + length_at(data, at)[0]
        except (struct.error, OverflowError):
            if at - len(data) > _MAX_STRING:
                self._fail("bad length of a text in an array")
            raise _EndOfWindowError(at + 8) from None
        self._skip(at - self._at)

    def _tensor(self) -> Tensor:
        name = self._string()
        dimensions = self._u32()
        if dimensions > _MAX_DIMENSIONS:
            self._fail(f"tensor '{name}' has {dimensions:,} dimensions")
        shape = tuple(self._u64() for _ in range(dimensions))
        kind, offset = self._u32(), self._u64()
        if 0 in shape:
            self._fail(f"tensor '{name}' has a zero dimension")
        if kind not in TENSOR_TYPES:
            self._fail(f"tensor '{name}' has a type that is not supported ({kind})")
        if max(prod(shape), offset) >= 1 << 48 or (shape and shape[0] % TENSOR_TYPES[kind][1]):
            self._fail(f"tensor '{name}' has a bad size")
        return Tensor(name, shape, kind, offset)

    def _u32(self) -> int:
        value: int = _U32.unpack(self._take(4))[0]
        return value

    def _u64(self) -> int:
        value: int = _U64.unpack(self._take(8))[0]
        return value

    def _take(self, count: int) -> bytes:
        start = self._skip(count)
        return self._data[start : self._at]

    def _skip(self, count: int) -> int:
        """Go on by `count` bytes; where that began."""
        start, end = self._at, self._at + count
        if end > len(self._data):
            raise _EndOfWindowError(end)
        self._at = end
        return start

    def _fail(self, cause: str) -> NoReturn:
        raise unusable(self._path, cause)
