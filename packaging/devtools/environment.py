"""The virtual environment: made once, filled with pinned packages, skipped as long as nothing changed."""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from devtools import llama
from devtools.console import DevError, run_logged
from devtools.layout import CONSTRAINTS, ROOT, VENV, cache_dir, child_environ, locked

STAMP = VENV / "laya-stamp.json"
MINIMUM = (3, 11)
BUILD_TOOLS = ["hatchling", "editables"]
"""What installing the checkout itself needs."""


def python(venv: Path = VENV) -> Path:
    return venv / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def venv_version(venv: Path = VENV) -> str:
    """The Python version of an environment, read without starting it; empty if there is none that works."""
    try:
        lines = (venv / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    if not python(venv).exists():
        return ""
    values = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}
    return values.get("version") or values.get("version_info", "")


def requirements(project: Mapping[str, Any], extras: Iterable[str]) -> list[str]:
    """Every direct requirement in pyproject.toml's [project] table, with those of `extras`."""
    found = list(project["dependencies"])
    for extra in sorted(extras):
        found += project["optional-dependencies"][extra]
    return found


def fingerprint(
    pyproject: Mapping[str, Any], constraints: bytes, *, version: str, root: Path, key: str
) -> str:
    """Changes whenever the installation must be brought up to date; linter settings do not count."""
    parts = {
        "project": pyproject.get("project"),
        "build": [pyproject.get("build-system"), pyproject.get("tool", {}).get("hatch")],
        "constraints": hashlib.sha256(constraints).hexdigest(),
        "python": version,
        "root": str(root),
        "llama": key,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def read_stamp(stamp: Path) -> tuple[str, set[str]]:
    """Fingerprint and extras of the last complete installation; empty if there was none."""
    try:
        data = json.loads(stamp.read_text(encoding="utf-8"))
        return str(data["fingerprint"]), set(data["extras"])
    except (OSError, ValueError, KeyError, TypeError):
        return "", set()


def ensure(extras: Iterable[str] = (), *, rebuild_engine: bool = False) -> Path:
    """Make .venv hold the app's dependencies and those of `extras`; returns its interpreter.

    `rebuild_engine` compiles llama.cpp anew even if a wheel is there.
    """
    wanted = set(extras)
    if _current(wanted) and not rebuild_engine:
        return python()
    place = hashlib.sha256(str(ROOT).encode()).hexdigest()[:12]
    with locked(cache_dir() / "locks" / place, "another set-up of this checkout"):
        if rebuild_engine or not _current(wanted):
            _install(wanted | read_stamp(STAMP)[1], rebuild_engine)
    return python()


def _current(extras: set[str]) -> bool:
    stamped, installed = read_stamp(STAMP)
    return bool(stamped) and extras <= installed and stamped == _fingerprint_now()


def _fingerprint_now() -> str:
    version = venv_version()
    if not _usable(version):
        return ""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    key = llama.key(_llama_version(pyproject["project"]), version, os.environ)
    return fingerprint(pyproject, CONSTRAINTS.read_bytes(), version=version, root=ROOT, key=key)


def _llama_version(project: Mapping[str, Any]) -> str:
    pin = next(text for text in project["dependencies"] if text.startswith("llama-cpp-python=="))
    return str(pin).partition("==")[2]


def _install(extras: set[str], rebuild_engine: bool) -> None:
    if not _usable(venv_version()):
        _create()
    STAMP.unlink(missing_ok=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    constraints = ["-c", str(CONSTRAINTS)]
    _pip("Updating pip", *constraints, "pip")
    wheel = llama.ensure_wheel(python(), _llama_version(project), venv_version(), rebuild=rebuild_engine)
    # By its file, so that pip cannot choose a wheel that was built with other flags.
    _pip("Installing llama.cpp", "--no-deps", "--force-reinstall", str(wheel))
    _pip("Installing packages", *constraints, *BUILD_TOOLS, *requirements(project, extras))
    _pip("Installing Laya Desktop", "--no-deps", "--no-build-isolation", "-e", str(ROOT))
    STAMP.write_text(json.dumps({"fingerprint": _fingerprint_now(), "extras": sorted(extras)}), "utf-8")


def _usable(version: str) -> bool:
    return bool(version) and tuple(int(part) for part in version.split(".")[:2]) >= MINIMUM


def _create() -> None:
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        raise DevError(
            "This Python cannot make virtual environments. On Debian and Ubuntu: "
            "sudo apt install python3-venv. Elsewhere install Python with its whole standard library."
        )
    if VENV.exists():
        shutil.rmtree(VENV)
    argv = [sys.executable, "-m", "venv", str(VENV)]
    run_logged("Making .venv", argv, log=_log("venv"), env=child_environ())


def _pip(title: str, *arguments: str) -> None:
    argv = [str(python()), "-m", "pip", "install", "--no-input", *arguments]
    run_logged(title, argv, log=_log("install"), env=child_environ())


def _log(name: str) -> Path:
    return cache_dir() / "logs" / f"{name}.log"


def output(argv: list[str]) -> str:
    """What a command in .venv prints. Raises DevError with its error output."""
    done = subprocess.run(argv, capture_output=True, text=True, encoding="utf-8", env=child_environ())
    if done.returncode != 0:
        raise DevError(f"This failed: {' '.join(argv)}\n{done.stderr.strip()}")
    return done.stdout.strip()
