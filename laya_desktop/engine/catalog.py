"""What a model file on the disk is, or why it cannot be used."""

import os
import re
import stat
from pathlib import Path

from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.core.types import ModelInfo
from laya_desktop.engine.gguf_header import GgufHeader, read_header, unusable
from laya_desktop.engine.gguf_tables import ARCHITECTURES, EMBEDDING_ARCHITECTURES

_PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)
_RAW_PART = re.compile(r".+\.part\d+of\d+", re.IGNORECASE)


def inspect_model(path: str | Path) -> ModelInfo:
    """Read what a GGUF file says of itself, all parts of a split one; blocks on the disk.

    Raises LayaError: model_file_missing if there is no readable file, model_load_failed with a short cause if
    this is no language model that can be loaded.
    """
    parts = model_parts(path)
    headers = [_header(part) for part in parts]
    first = headers[0]
    _check_kind(parts[0], first)
    architecture = first.architecture
    return ModelInfo(
        architecture=architecture,
        size_bytes=sum(header.file_bytes for header in headers),
        parameters=sum(header.parameters for header in headers) or None,
        quantization=first.quantization,
        trained_context=first.number(f"{architecture}.context_length") or None,
        has_chat_template=bool(first.text("tokenizer.chat_template")),
        title=first.text("general.name") or None,
    )


def model_parts(path: str | Path) -> tuple[Path, ...]:
    """The files of a model in order, whichever of them is named; the first is the one to load.

    Raises LayaError as `inspect_model` does.
    """
    path = Path(path)
    if _RAW_PART.fullmatch(path.name):
        raise unusable(path, "it is a piece of a file", "Join the parts first: put them together in order.")
    match = _PART.fullmatch(path.name)
    if match is None:
        _check_file(path)
        return (path,)
    number, count = int(match["number"]), int(match["count"])
    if not 1 <= number <= count <= 1000:
        raise unusable(path, f"part {number} of {count} is impossible", "Restore the name that it had.")
    parts = tuple(
        path.with_name(f"{match['stem']}-{index:05}-of-{count:05}{path.suffix}")
        for index in range(1, count + 1)
    )
    _check_file(path)
    for index, part in enumerate(parts, 1):
        if not part.is_file():
            raise LayaError(
                ErrorCode.MODEL_FILE_MISSING,
                f"{path}: part {index} of {count} missing.",
                hint=f"Put {part.name} in the same folder.",
            )
    return parts


def _check_file(path: Path) -> None:
    """Look before opening: a FIFO would block for ever."""
    try:
        mode = path.stat().st_mode
    except ValueError as error:
        raise _missing(path, "this cannot be the path of a file") from error
    except OSError as error:
        if isinstance(error, FileNotFoundError) and path.is_symlink():
            raise _missing(path, f"it points to {os.readlink(path)}, which is missing") from error  # noqa: PTH115
        raise _missing(path, _reason(error)) from error
    if stat.S_ISDIR(mode):
        raise _missing(path, "it is a folder, not a file")
    if not stat.S_ISREG(mode):
        raise _missing(path, "it is not a regular file")


def _header(path: Path) -> GgufHeader:
    try:
        return read_header(path)
    except OSError as error:
        raise _missing(path, _reason(error)) from error


def _check_kind(path: Path, header: GgufHeader) -> None:
    architecture = header.architecture
    if not architecture:
        raise unusable(path, "it does not name its architecture")
    if architecture not in ARCHITECTURES:
        raise unusable(
            path,
            f"architecture '{architecture}' is not supported",
            "A newer version of this app may support it.",
        )
    if architecture == "clip":
        raise unusable(path, "it is a projector (mmproj) for images, not a language model")
    if architecture in EMBEDDING_ARCHITECTURES or header.number(f"{architecture}.pooling_type"):
        raise unusable(path, "it is an embedding model, which cannot chat")
    if header.number("split.count", 1) > 1 and not _PART.fullmatch(path.name):
        raise unusable(path, "it is one part of a split model", "Restore the names that the parts had.")


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, PermissionError):
        return "it cannot be read: no permission"
    return f"it cannot be read: {error.strerror or error}"


def _missing(path: Path, cause: str) -> LayaError:
    return LayaError(
        ErrorCode.MODEL_FILE_MISSING, f"{path}: {cause}.", hint="Restore it or correct the path."
    )
