"""The file on the disk: loading, live edits, and writing that survives a crash."""

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from laya_desktop.config import store as store_module
from laya_desktop.config.reader import MAX_BYTES
from laya_desktop.config.schema import Config
from laya_desktop.config.store import ConfigStore
from laya_desktop.core.errors import ErrorCode, LayaError

TEXT = """\
# my settings
server:  # the API
  port: 8080  # the usual one
  host: localhost

models:
  # small and fast
  - name: no  # a real name
    path: x.gguf
  - name: 0123
    path: y.gguf

ui:
  theme: dark
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(TEXT, encoding="utf-8", newline="")
    return path


@pytest.fixture
def store(path: Path) -> ConfigStore:
    store = ConfigStore(path)
    assert store.load()
    return store


def refusal(action: Callable[[], None]) -> str:
    with pytest.raises(LayaError) as caught:
        action()
    assert caught.value.info.code is ErrorCode.INVALID_REQUEST
    return caught.value.info.sentence()


def leftovers(path: Path) -> list[str]:
    return [item.name for item in path.parent.iterdir() if item.name not in (path.name, f".{path.name}.lock")]


# Loading


def test_without_a_file(tmp_path: Path) -> None:
    store = ConfigStore(tmp_path / "none" / "config.yaml")
    assert store.load()
    assert store.config == Config()
    assert not store.poll()


def test_without_a_path() -> None:
    store = ConfigStore(None)
    assert store.load()
    assert not store.poll()
    assert "no config file" in refusal(lambda: store.set("ui.theme", "dark"))


def test_a_broken_live_edit_keeps_the_last_good_config(store: ConfigStore, path: Path) -> None:
    before = store.config
    path.write_text("server:\n\tport: 1\n", encoding="utf-8")
    assert store.poll()
    assert not store.load()
    assert not store.poll()
    assert store.config is before
    assert [problem.line for problem in store.problems] == [2]

    path.write_text("server:\n  port: 81\n", encoding="utf-8")
    assert store.poll()
    assert store.load()
    assert store.config.server.port == 81
    assert store.problems == ()


def test_a_file_that_vanishes_does_not_reset_the_app(store: ConfigStore, path: Path) -> None:
    path.unlink()
    assert store.poll()
    assert not store.load()
    assert store.config.server.port == 8080
    assert "missing" in str(store.problems[0])
    path.write_text(TEXT, encoding="utf-8")
    assert store.poll()
    assert store.load()


@pytest.mark.parametrize(
    "content", [b"\0" * 64560, b'{"server": {"po', b"\xff\xfe\x00", b"x: " + b"y" * MAX_BYTES]
)
def test_damaged_files_do_not_stop_the_app(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    store = ConfigStore(path)
    assert not store.load()
    assert store.config == Config()
    assert store.problems
    before = path.read_bytes()
    refusal(lambda: store.set("ui.theme", "light"))
    assert path.read_bytes() == before


def test_no_bytes_are_defaults(path: Path) -> None:
    path.write_bytes(b"")
    store = ConfigStore(path)
    assert store.load()
    assert store.config == Config()


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    store = ConfigStore(tmp_path)
    assert not store.load()
    assert "cannot be read" in str(store.problems[0])


def test_a_file_that_may_not_be_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    store = ConfigStore(path)
    assert not store.load()
    assert "Permission denied" in str(store.problems[0])


# Symlinks


def test_a_symlink_is_followed_and_stays(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "config.yaml"
    link.parent.mkdir()
    link.symlink_to(path)
    store = ConfigStore(link)
    assert store.load()
    assert store.config.models[0].path == str(path.parent / "x.gguf")
    store.set("ui.theme", "light")
    assert link.is_symlink()
    assert "theme: light" in path.read_text(encoding="utf-8")
    assert store.load()

    path.write_text("ui: {theme: [}", encoding="utf-8")
    assert store.poll()
    assert not store.load()
    path.write_text("ui: {theme: system}", encoding="utf-8")
    assert store.poll()
    assert store.load()

    other = tmp_path / "other.yaml"
    other.write_text("ui: {theme: light}", encoding="utf-8")
    link.unlink()
    link.symlink_to(other)
    assert store.poll()


def test_a_dangling_symlink_is_a_problem(tmp_path: Path) -> None:
    link = tmp_path / "config.yaml"
    link.symlink_to(tmp_path / "gone.yaml")
    store = ConfigStore(link)
    assert not store.load()
    assert "missing" in str(store.problems[0])


# Edits


def test_an_edit_changes_one_line(store: ConfigStore, path: Path) -> None:
    store.set("ui.theme", "light")
    assert path.read_text(encoding="utf-8") == TEXT.replace("theme: dark", "theme: light")
    assert store.config.ui.theme == "light"
    assert store.poll(), "whoever applies the config learns of the change"
    assert store.load()
    assert not store.poll()
    assert leftovers(path) == []


def test_edits_of_every_kind(store: ConfigStore, path: Path) -> None:
    store.set("server.port", 0)
    store.set("models[1].keep_in_memory", True)
    store.set("hub.proxy", "no")
    store.set("ui.shortcut", None)
    store.set("router.fallback_models", ["no", "0123"])
    store.set("memory", {"reserved_system_gb": 2.5})
    assert store.load()
    config = store.config
    assert config.server.port == 0
    assert config.models[1].keep_in_memory is True
    assert config.hub.proxy == "no"
    assert config.router.fallback_models == ("no", "0123")
    assert config.memory.reserved_system_gb == 2.5
    text = path.read_text(encoding="utf-8")
    for comment in ("# my settings", "# the API", "# the usual one", "# small and fast", "# a real name"):
        assert comment in text


def test_lists_are_replaced_as_a_whole(store: ConfigStore, path: Path) -> None:
    store.set("models", [])
    assert store.config.models == ()
    store.set("models", [{"name": "12:30", "path": "z.gguf", "tags": ["a", "b"]}])
    assert store.config.models[0].name == "12:30"
    assert store.load()
    assert store.config.models[0].tags == ("a", "b")
    assert "# my settings" in path.read_text(encoding="utf-8")


ODD_NAMES = ["no", "on", "null", "~", "True", "3.1", "2024-12-01", "0123", "12:30", "1_000"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_an_edit_leaves_odd_names_alone(path: Path, name: str) -> None:
    path.write_text(f"models:\n- name: {name}\n  path: x.gguf\nui:\n", encoding="utf-8")
    store = ConfigStore(path)
    store.set("ui.theme", "dark")
    assert store.config.models[0].name == name
    assert f"name: {name}\n" in path.read_text(encoding="utf-8")


def test_a_missing_file_is_created(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.yaml"
    store = ConfigStore(path)
    store.set("ui.theme", "dark")
    assert path.read_text(encoding="utf-8") == "ui:\n  theme: dark\n"


def test_a_file_of_comments_keeps_them(path: Path) -> None:
    path.write_text("# hello", encoding="utf-8")
    ConfigStore(path).set("ui.theme", "dark")
    assert path.read_text(encoding="utf-8") == "# hello\nui:\n  theme: dark\n"


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16"])
def test_encoding_indentation_and_line_ends_stay(path: Path, codec: str) -> None:
    text = "server:\r\n    port: 81 # größer\r\nmodels:\r\n- name: a\r\n  path: x.gguf\r\n"
    path.write_bytes(text.encode(codec))
    ConfigStore(path).set("server.port", 82)
    assert path.read_bytes() == text.replace("81", "82").encode(codec)


def test_edits_beside_merge_keys(path: Path) -> None:
    path.write_text("models:\n- &d {name: a, path: x.gguf}\n- {<<: *d, name: b}\n", encoding="utf-8")
    store = ConfigStore(path)
    store.set("models[1].priority", 3)
    assert [model.priority for model in store.config.models] == [10, 3]
    assert "<<: *d" in path.read_text(encoding="utf-8")


def test_an_edit_that_would_change_more_is_refused(path: Path) -> None:
    text = "x: &s {theme: dark}\n".replace("x: &s", "ui: &s") + "router: {rules: &r []}\n"
    path.write_text(
        "router:\n  fallback_models: &f [a]\nmodels:\n- {name: a, path: x, tags: *f}\n" + text[:21], "utf-8"
    )
    store = ConfigStore(path)
    before = path.read_bytes()
    assert "something else" in refusal(lambda: store.set("models[0].tags[0]", "b"))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("server.port", "8080", "server.port: expected a whole number, found the text '8080'."),
        ("server.prt", 1, "Did you mean 'port'?"),
        ("ui.theme", "drak", "Did you mean 'dark'?"),
        ("models[7].name", "x", "There is no setting models[7].name."),
        ("models.x", 1, "There is no setting models.x."),
        ("server[0]", 1, "There is no setting server[0]."),
        ("models[0].name", "0123", "already taken"),
        ("", 1, "not the name of a setting"),
        ("a b", 1, "not the name of a setting"),
        ("server", 3, "expected a section"),
    ],
)
def test_invalid_edits(store: ConfigStore, path: Path, key: str, value: object, expected: str) -> None:
    assert expected in refusal(lambda: store.set(key, value))
    assert path.read_text(encoding="utf-8") == TEXT
    assert store.config.server.port == 8080


def test_a_broken_file_is_not_edited(store: ConfigStore, path: Path) -> None:
    path.write_text("server: {prt: 1}\n", encoding="utf-8")
    sentence = refusal(lambda: store.set("ui.theme", "light"))
    assert "config.yaml:1: server.prt: unknown key" in sentence
    assert "Correct the file first" in sentence


# Writing


@pytest.mark.skipif(os.name != "posix", reason="modes are a POSIX thing")
def test_the_mode_stays(store: ConfigStore, path: Path) -> None:
    path.chmod(0o640)
    store.set("ui.theme", "light")
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
def test_a_kill_in_mid_save_leaves_the_old_file(path: Path, step: str) -> None:
    script = f"""
import os, pathlib, sys
from laya_desktop.config.store import ConfigStore
def die(*_): os._exit(9)
{step} = die
ConfigStore(pathlib.Path(sys.argv[1])).set("ui.theme", "light")
"""
    done = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert done.returncode == 9
    assert path.read_text(encoding="utf-8") == TEXT
    store = ConfigStore(path)
    assert store.load()
    store.set("ui.theme", "light")
    assert leftovers(path) == []


def test_a_full_disk_leaves_the_old_file(
    store: ConfigStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left on device" in refusal(lambda: store.set("ui.theme", "light"))
    assert path.read_text(encoding="utf-8") == TEXT
    assert leftovers(path) == []
    assert store.config.ui.theme == "dark"


def test_a_folder_that_may_not_be_written(store: ConfigStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(store_module, "replace_file", refuse)
    sentence = refusal(lambda: store.set("ui.theme", "light"))
    assert "cannot be written: Permission denied" in sentence
    assert "permissions" in sentence


def test_two_writers_lose_nothing(path: Path) -> None:
    def write(key: str) -> None:
        store = ConfigStore(path)
        for value in range(1, 11):
            store.set(key, value)

    keys = ["executor.max_batch_size", "scheduler.max_concurrent_requests"]
    threads = [threading.Thread(target=write, args=(key,)) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = ConfigStore(path)
    assert store.load()
    assert store.config.executor.max_batch_size == 10
    assert store.config.scheduler.max_concurrent_requests == 10


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes with names")
@pytest.mark.parametrize("kind", ["pipe", "device", "large"])
def test_a_file_that_is_no_config_is_neither_read_nor_changed(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "config.yaml"
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "device":
            file.symlink_to("/dev/zero")
        case "large":
            file.write_bytes(b"#" * (MAX_BYTES + 1))
    store = ConfigStore(file)
    assert not store.load()
    reason = "larger than" if kind == "large" else "it is not a file"
    assert reason in store.problems[0].message
    with pytest.raises(LayaError):
        store.set("ui.theme", "dark")


def test_half_a_character_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(TEXT)
    store = ConfigStore(file)
    assert store.load()
    with pytest.raises(LayaError):
        store.set("server.api_keys", ["k\ud83d"])
    assert file.read_text() == TEXT
