"""The wheel of llama-cpp-python: compiled once per machine and kept in the user cache folder.

It is built without the native instruction set (GGML_NATIVE=OFF): a native build may use what the next
machine, or this one's hypervisor, does not have, and then the process dies. The wheel cache of pip ignores
build flags, so it is left out; ours has them in its key.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from devtools.console import DevError, run_logged, say
from devtools.layout import CONSTRAINTS, cache_dir, child_environ, locked

FLAGS = ["cmake.define.GGML_NATIVE=OFF"]

_COMPILER_ADVICE = {
    "linux": "On Debian and Ubuntu: sudo apt install g++. On Fedora: sudo dnf install gcc-c++. "
    "On Arch: sudo pacman -S gcc.",
    "darwin": "Install Apple's command line tools: xcode-select --install.",
    "win32": "Install the Build Tools for Visual Studio with the workload “Desktop development with C++”.",
}

Which = Callable[[str], str | None]
Call = Callable[[list[str]], str]


def key(version: str, python_version: str, environ: Mapping[str, str]) -> str:
    """Names a build: version, Python, system, processor and everything that changes the result.

    ``CMAKE_ARGS`` counts, so that a build for a graphics card gets a wheel of its own.
    """
    python = "py" + "".join(python_version.split(".")[:2])
    libc = "".join(platform.libc_ver()) if sys.platform == "linux" else ""
    flags = "\n".join([*FLAGS, environ.get("CMAKE_ARGS", "")])
    digest = hashlib.sha256(flags.encode()).hexdigest()[:8]
    return "-".join(part for part in (version, python, sysconfig.get_platform(), libc, digest) if part)


def ensure_wheel(python: Path, version: str, python_version: str, *, rebuild: bool = False) -> Path:
    """The wheel for this machine, built now if there is none yet or if `rebuild` is set."""
    wheels = cache_dir() / "wheels"
    folder = wheels / key(version, python_version, os.environ)
    if not rebuild and (wheel := _wheel_in(folder)):
        return wheel
    with locked(wheels / f"{folder.name}.lock", "another build of llama.cpp"):
        wheel = None if rebuild else _wheel_in(folder)
        return wheel or _build(python, version, folder)


def _wheel_in(folder: Path) -> Path | None:
    return next(iter(sorted(folder.glob("llama_cpp_python-*.whl"))), None)


def _build(python: Path, version: str, folder: Path) -> Path:
    require_compiler(sys.platform, shutil.which, _quiet_output, os.environ)
    say("llama.cpp is compiled once for this machine; on two cores this takes about six minutes.")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".build-") as temporary:
        settings = [f"--config-settings={flag}" for flag in FLAGS]
        argv = [str(python), "-m", "pip", "wheel", "--no-input", "--no-cache-dir", "--no-deps"]
        # The source release always: a ready-made wheel would have been built with other flags.
        argv += [*settings, "--no-binary=llama-cpp-python", f"--build-constraint={CONSTRAINTS}"]
        argv += ["--wheel-dir", temporary, f"llama-cpp-python=={version}"]
        log = cache_dir() / "logs" / "llama-build.log"
        run_logged("Compiling llama.cpp", argv, log=log, env=child_environ())
        built = _wheel_in(Path(temporary))
        if built is None:
            raise DevError(f"Compiling llama.cpp left no wheel; what it said: {log}")
        folder.mkdir(exist_ok=True)
        return built.replace(folder / built.name)


def require_compiler(system: str, which: Which, call: Call, environ: Mapping[str, str]) -> None:
    """Raises DevError with what to install when no C++ compiler can be found."""
    if not _has_compiler(system, which, call, environ):
        advice = _COMPILER_ADVICE.get(system, "Install one with your system's package manager.")
        raise DevError(f"Compiling llama.cpp needs a C++ compiler, and none was found. {advice}")


def _has_compiler(system: str, which: Which, call: Call, environ: Mapping[str, str]) -> bool:
    if (chosen := environ.get("CXX")) and which(chosen.split()[0]):
        return True
    if system == "darwin":  # /usr/bin/c++ is there even without the tools: it only offers to install them
        return bool(call(["xcode-select", "-p"]))
    if any(which(name) for name in ("c++", "g++", "clang++")):
        return True
    if system != "win32":
        return False
    installer = Path(environ.get("ProgramFiles(x86)", "")) / "Microsoft Visual Studio" / "Installer"
    find = [str(installer / "vswhere.exe"), "-latest", "-products", "*", "-property", "installationPath"]
    return bool(which("cl") or call(find))


def _quiet_output(argv: list[str]) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
