"""What the path of a model means."""

import re
from pathlib import Path

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_FILES = (".gguf", ".jinja", ".jinja2", ".j2")
_WINDOWS_ROOT = re.compile(r"[A-Za-z]:[\\/]|\\\\")


def is_address(path: str) -> bool:
    return path.lower().startswith(("http://", "https://"))


def guess_backend(path: str) -> str:
    """The backend that a path asks for by its looks."""
    if is_address(path):
        return "openai"
    if path.lower().endswith(".gguf"):
        return "gguf"
    # Only the last two parts: a parent folder may be called anything.
    return "mlx" if "mlx" in "/".join(Path(path).parts[-2:]).lower() else "hf"


def resolve(path: str, folder: Path | None) -> str:
    """An absolute path, or the text itself if it is an address or a hub id. Relative: from `folder`."""
    if is_address(path) or _WINDOWS_ROOT.match(path):
        return path
    try:
        expanded = Path(path).expanduser()
    except RuntimeError:  # ~name of a user that does not exist
        return path
    if expanded.is_absolute() or folder is None:
        return str(expanded)
    local = folder / expanded
    is_hub_id = (
        _HUB_ID.fullmatch(path) and not path.startswith(".") and Path(path).suffix.lower() not in _FILES
    )
    return path if is_hub_id and not local.exists() else str(local)
