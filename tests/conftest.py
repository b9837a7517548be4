"""What every test gets: a data folder of its own, the models, and a check that nothing is left behind."""

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")  # before anything imports Qt

import psutil
import pytest
from devtools import models

GUI = Path(__file__).parent / "gui"
PROCESS_GRACE_S = 2.0
"""How long a child may take to end after its test."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if GUI in item.path.parents:
            item.add_marker(pytest.mark.gui)


@pytest.fixture(scope="session")
def starter_model() -> Path:
    """The starter model's file. Its absence is a failure: a test run without it proves little."""
    path = Path(os.environ.get("LAYA_TEST_MODEL") or models.cached(models.starter()))
    if not path.is_file():
        pytest.fail(f"The starter model is not at {path}: fetch it with python3 packaging/dev.py test.")
    return path


@pytest.fixture(scope="session")
def gemma_model() -> Path:
    """Gemma 3 270M (base), where a developer has it."""
    path = Path(os.environ.get("LAYA_TEST_GEMMA") or models.cached(models.GEMMA))
    if not path.is_file():
        pytest.skip("Gemma's terms do not allow us to ship it, and it is not installed here.")
    return path


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Config, data, cache and logs of this test, so that no test touches a user's."""
    home = tmp_path / "laya-home"
    monkeypatch.setenv("LAYA_HOME", str(home))
    return home


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Fails a test that leaves windows open or child processes running, and removes them."""
    windows, children = _windows(), _children()
    yield
    left = _leaked_windows(windows) + _leaked_children(children)
    if left:
        pytest.fail("The test left behind: " + ", ".join(left), pytrace=False)


def _children() -> set[psutil.Process]:
    return set(psutil.Process().children())


def _leaked_children(before: set[psutil.Process]) -> list[str]:
    new = [child for child in _children() - before if not _is_helper(child)]
    _, alive = psutil.wait_procs(new, timeout=PROCESS_GRACE_S) if new else ([], [])
    names = [f"process {child.pid} ({' '.join(_command(child)[:4])})" for child in alive]
    for child in alive:
        child.kill()
    return names


def _is_helper(child: psutil.Process) -> bool:
    """Processes of the standard library that live as long as the interpreter, and those that have ended."""
    return any("resource_tracker" in part or "forkserver" in part for part in _command(child))


def _command(child: psutil.Process) -> list[str]:
    try:
        return child.cmdline()
    except psutil.Error:
        return []


def _windows() -> set[Any]:
    """Windows that nothing owns; empty as long as no test made an application."""
    widgets = sys.modules.get("PySide6.QtWidgets")
    if widgets is None or widgets.QApplication.instance() is None:
        return set()
    found = widgets.QApplication.topLevelWidgets()
    return {window for window in found if window.parent() is None and not window.inherits("QTipLabel")}


def _leaked_windows(before: set[Any]) -> list[str]:
    if not _windows() - before:
        return []
    from PySide6.QtCore import QCoreApplication, QEvent

    gc.collect()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    left = _windows() - before
    names = [f"window {type(window).__name__} “{window.windowTitle()}”" for window in left]
    for window in left:
        window.close()
        window.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    return names
