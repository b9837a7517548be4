"""A config file that a crash or a disk damaged, and one that a person broke, at the start of the app."""

import os
from pathlib import Path

import pytest

from laya_desktop.config.store import ConfigStore

GOOD = "ui:\n  theme: dark  # mine\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(GOOD)
    assert opened(path).config.ui.theme == "dark"
    return path


def opened(path: Path) -> ConfigStore:
    store = ConfigStore(path, path.parent / "data")
    store.load()
    return store


def aside(path: Path) -> list[Path]:
    return list(path.parent.glob("config.yaml.corrupt-*"))


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"", "it is empty"),
        (b"\0" * 64560, "nothing but NUL bytes"),
        (b"ui:\n  theme: dark\0\0\0\0", "contains NUL bytes"),
        (b'{"ui": {"theme": "light", "lang', "its end is missing"),
        (b'{"ui": [', "its end is missing"),
    ],
)
def test_a_damaged_file_is_set_aside_and_the_last_good_one_comes_back(
    path: Path, data: bytes, cause: str
) -> None:
    path.write_bytes(data)
    store = opened(path)
    assert store.config.ui.theme == "dark"
    assert path.read_text() == GOOD
    (old,) = aside(path)
    assert old.read_bytes() == data
    sentence = str(store.problems[0])
    assert cause in sentence
    assert old.name in sentence
    assert not store.poll()
    assert opened(path).problems == ()


@pytest.mark.parametrize(
    "text", ["ui:\n  theme: purple\n", "ui:\n\ttheme: dark\n", "ui: {theme: dark]\n", "models: [}\n"]
)
def test_a_file_that_a_person_broke_stays_and_the_last_good_settings_are_in_effect(
    path: Path, text: str
) -> None:
    path.write_text(text)
    store = opened(path)
    assert store.config.ui.theme == "dark"
    assert store.problems
    assert path.read_text() == text
    assert aside(path) == []
    path.write_text("ui:\n  theme: light\n")
    assert store.load()
    assert store.config.ui.theme == "light"


@pytest.mark.parametrize("text", ["", "# nothing yet\n"])
def test_a_file_emptied_while_the_app_runs_means_defaults_at_the_next_start_too(
    path: Path, text: str
) -> None:
    store = opened(path)
    path.write_text(text)
    assert store.load()
    again = opened(path)
    assert (again.config.ui.theme, again.problems, aside(path)) == ("system", (), [])


def test_a_change_made_by_the_app_is_what_comes_back(path: Path) -> None:
    opened(path).set("ui.theme", "light")
    path.write_bytes(b"\0" * 10)
    assert opened(path).config.ui.theme == "light"
    assert "theme: light # mine" in path.read_text()


def test_a_damaged_backup_restores_nothing(path: Path) -> None:
    for file in (path.parent / "data").iterdir():
        file.write_bytes(b"\0\0")
    path.write_bytes(b"\0\0")
    store = opened(path)
    assert store.config.ui.theme == "system"
    assert store.problems
    assert aside(path) == []


@pytest.mark.skipif(os.name != "posix", reason="links need a right on Windows")
def test_a_linked_file_is_restored_where_it_is(path: Path) -> None:
    real = path.with_name("real.yaml")
    path.rename(real)
    path.symlink_to(real)
    opened(path)
    real.write_bytes(b"\0")
    assert opened(path).config.ui.theme == "dark"
    assert path.is_symlink()
    assert real.read_text() == GOOD


def test_a_backup_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(GOOD)
    (tmp_path / "data").write_text("a file where the folder should be")
    store = opened(path)
    assert (store.config.ui.theme, store.problems) == ("dark", ())
