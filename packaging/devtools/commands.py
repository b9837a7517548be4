"""The commands of packaging/dev.py."""

import io
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from devtools import environment, models, qtlibs
from devtools.console import DevError, say
from devtools.layout import ROOT, child_environ

SMOKE_TIMEOUT_S = 300
REBUILD = "--rebuild-engine"
LINT_IMPORTS = (
    "from importlinter.cli import lint_imports_command; lint_imports_command(['--no-logo', '--no-cache'])"
)
MODELS_FOLDER = "from laya_desktop.core.paths import Paths; print(Paths.default().models)"


def dispatch(argv: list[str], usage: str) -> int:
    for stream in (sys.stdout, sys.stderr):  # a console without Unicode must not end us
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    commands: dict[str, Callable[[list[str]], int]] = {
        "run": run,
        "test": test,
        "bench": bench,
        "screenshots": screenshots,
    }
    if not argv or argv[0] in ("-h", "--help", "help"):
        say(usage.strip())
        return 0
    command = commands.get(argv[0])
    if command is None:
        return _fail(f"There is no command “{argv[0]}”. There are: {', '.join(commands)}.")
    try:
        return command(argv[1:])
    except DevError as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"The system refused something: {error}")
    except KeyboardInterrupt:
        return 130


def _fail(sentence: str) -> int:
    print(sentence, file=sys.stderr, flush=True)
    return 1


def run(arguments: list[str]) -> int:
    """Open the app. With --smoke it needs no display and must end by itself."""
    rebuild = REBUILD in arguments
    arguments = [argument for argument in arguments if argument != REBUILD]
    smoke = "--smoke" in arguments
    displays = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    headless = smoke and sys.platform == "linux" and not any(os.environ.get(name) for name in displays)
    command = bool(arguments) and not arguments[0].startswith("-")  # serve, check and the like
    if not command:
        qtlibs.require(os.environ, window=not headless)
    python = environment.ensure(rebuild_engine=rebuild)
    starter = models.starter()
    folder = Path(environment.output([str(python), "-c", MODELS_FOLDER]))
    models.place(models.ensure_cached(python, starter), folder, starter)
    argv = [str(python), "-m", "laya_desktop", *arguments]
    environ = child_environ(**({"QT_QPA_PLATFORM": "offscreen"} if headless else {}))
    if smoke:
        return _call(argv, environ, timeout=SMOKE_TIMEOUT_S)
    if sys.platform != "win32":
        sys.stdout.flush()
        os.execve(argv[0], argv, environ)
    return _call(argv, environ)


def test(arguments: list[str]) -> int:
    """All checks, then all tests; every one runs even if an earlier one failed."""
    qtlibs.require(os.environ, window=False)
    python = str(environment.ensure(["dev"]))
    environ = _test_environ(Path(python))
    checks = {
        "ruff check": [python, "-m", "ruff", "check", "."],
        "ruff format": [python, "-m", "ruff", "format", "--check", "."],
        "mypy": [python, "-m", "mypy"],
        "lint-imports": [python, "-c", LINT_IMPORTS],
    }
    failed = [name for name, argv in checks.items() if not _check(name, argv, environ)]
    say("== pytest")
    code = _call([python, "-m", "pytest", *arguments], environ, folder=ROOT)
    if failed:
        return _fail(f"Failed before the tests: {', '.join(failed)}.")
    return code


def _check(name: str, argv: list[str], environ: Mapping[str, str]) -> bool:
    say(f"== {name}")
    started = time.monotonic()
    passed = _call(argv, environ, folder=ROOT) == 0
    say(f"== {name}: {'ok' if passed else 'FAILED'} in {time.monotonic() - started:.1f} s")
    return passed


def bench(arguments: list[str]) -> int:
    """One benchmark of tests/bench; what follows its name goes to it."""
    folder = ROOT / "tests" / "bench"
    names = sorted(path.stem.removeprefix("bench_") for path in folder.glob("bench_*.py"))
    if not arguments or arguments[0] not in names:
        raise DevError(f"Name a benchmark, one of: {', '.join(names) or 'none is written yet'}.")
    qtlibs.require(os.environ, window=False)
    python = str(environment.ensure(["dev"]))
    return _call(
        [python, str(folder / f"bench_{arguments[0]}.py"), *arguments[1:]], _test_environ(Path(python))
    )


def screenshots(arguments: list[str]) -> int:
    """A picture of every page, drawn without a display."""
    if not arguments:
        raise DevError("Name the folder for the pictures: python3 packaging/dev.py screenshots OUT_DIR")
    script = ROOT / "tests" / "gui" / "screenshots.py"
    if not script.is_file():
        raise DevError(f"{script.relative_to(ROOT)} is not written yet.")
    qtlibs.require(os.environ, window=False)
    python = str(environment.ensure(["dev"]))
    return _call([python, str(script), *arguments], _test_environ(Path(python)))


def _test_environ(python: Path) -> dict[str, str]:
    """Offscreen Qt, and the models: the starter is a must, Gemma is not."""
    starter = models.ensure_cached(python, models.starter())
    environ = child_environ(QT_QPA_PLATFORM="offscreen", LAYA_TEST_MODEL=str(starter))
    try:
        environ["LAYA_TEST_GEMMA"] = str(models.ensure_cached(python, models.GEMMA))
    except DevError:
        say("Gemma could not be fetched; the tests that need it are skipped.")
    return environ


def _call(
    argv: list[str], environ: Mapping[str, str], *, folder: Path | None = None, timeout: float | None = None
) -> int:
    """Run and return the exit code; Ctrl+C goes to the child, which ends in its own way."""
    with subprocess.Popen(argv, cwd=folder, env=environ) as process:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                return process.wait(left)
            except KeyboardInterrupt:
                continue
            except subprocess.TimeoutExpired:
                process.kill()
                raise DevError(f"It did not end within {timeout:.0f} seconds and was stopped.") from None
