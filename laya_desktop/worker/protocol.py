"""Frames between the engine and a worker: length-prefixed msgpack on the child's original stdin and stdout.

A frame is a 4-byte little-endian length and that many bytes. `MAX_FRAME_BYTES` bounds what either side
will allocate for one frame.
"""

import struct
from typing import BinaryIO

import msgspec

from laya_desktop.backends.base import StreamEvent
from laya_desktop.core.errors import ErrorInfo
from laya_desktop.core.types import LoadedInfo, LoadSpec, Message, Sampling

MAX_FRAME_BYTES = 256 * 1024 * 1024
HEADER = struct.Struct("<I")


class _Frame(msgspec.Struct, frozen=True, tag=True):
    pass


class Load(_Frame, frozen=True):
    spec: LoadSpec


class Generate(_Frame, frozen=True):
    request_id: str
    messages: tuple[Message, ...]
    sampling: Sampling


class Cancel(_Frame, frozen=True):
    request_id: str


class UseThreads(_Frame, frozen=True):
    count: int


class Shutdown(_Frame, frozen=True):
    pass


class LoadProgress(_Frame, frozen=True):
    fraction: float


class Loaded(_Frame, frozen=True):
    info: LoadedInfo


class LoadFailed(_Frame, frozen=True):
    error: ErrorInfo


class Events(_Frame, frozen=True):
    """All that one step produced."""

    items: list[StreamEvent]


Command = Load | Generate | Cancel | UseThreads | Shutdown
Report = LoadProgress | Loaded | LoadFailed | Events

_encoder = msgspec.msgpack.Encoder()
command_decoder = msgspec.msgpack.Decoder(Command)
report_decoder = msgspec.msgpack.Decoder(Report)


class FrameError(Exception):
    """The other side wrote something that is not a frame."""


def pack(frame: Command | Report) -> bytes:
    """One frame as bytes, header included."""
    body = _encoder.encode(frame)
    return HEADER.pack(len(body)) + body


def frame_length(header: bytes) -> int:
    """Body length in bytes. Raises FrameError if it is beyond `MAX_FRAME_BYTES`."""
    (length,) = HEADER.unpack(header)
    if length > MAX_FRAME_BYTES:
        raise FrameError(f"frame of {length} bytes")
    return int(length)


def read_command(stream: BinaryIO) -> Command | None:
    """Read one command, blocking. None when the other side closed the pipe, be it in the middle of a frame.

    Raises FrameError or msgspec.DecodeError if it wrote something else.
    """
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    length = frame_length(header)
    body = stream.read(length)
    return command_decoder.decode(body) if len(body) == length else None
