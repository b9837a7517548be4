"""The window's geometry between runs, kept in a state file of its own. UI thread only."""

from pathlib import Path

from PySide6.QtCore import QRect, QSettings, QSize, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

_VISIBLE = QSize(120, 60)
"""At least this much of the title's strip must lie on a screen."""


class WindowState:
    def __init__(self, folder: Path) -> None:
        self._settings = QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat)

    def restore(self, window: QWidget) -> None:
        """Give the window its last place, moved onto a screen that exists."""
        saved = self._settings.value("geometry")
        if isinstance(saved, QRect) and saved.isValid():
            window.setGeometry(on_screen(saved, window.minimumSize()))
        if self._settings.value("maximized", False, type=bool):
            window.setWindowState(window.windowState() | Qt.WindowState.WindowMaximized)

    def save(self, window: QWidget) -> None:
        """Remember the place; called before the window closes."""
        self._settings.setValue("maximized", window.isMaximized())
        place = window.normalGeometry() if window.isMaximized() else window.geometry()
        self._settings.setValue("geometry", place)
        self._settings.sync()


def on_screen(wanted: QRect, smallest: QSize) -> QRect:
    """`wanted`, unchanged if its title can be reached, else on the main screen."""
    title = QRect(wanted.topLeft(), QSize(wanted.width(), _VISIBLE.height()))
    for screen in QGuiApplication.screens():
        overlap = screen.availableGeometry().intersected(title)
        if overlap.width() >= _VISIBLE.width() and overlap.height() >= _VISIBLE.height() // 2:
            return wanted
    main = QGuiApplication.primaryScreen().availableGeometry()
    size = wanted.size().boundedTo(main.size()).expandedTo(smallest)
    result = QRect(main.topLeft(), size)
    result.moveCenter(main.center())
    return result
