"""PySide6 must not lose references to None: 6.12.0 on Python 3.11 does, and aborts the app after a while."""

import sys

from PySide6.QtCore import QObject
from PySide6.QtGui import QTextCursor, QTextDocument
from PySide6.QtWidgets import QApplication

_HANDFUL = 50


def test_void_calls_keep_none_alive(qapp: QApplication) -> None:
    thing = QObject()
    document = QTextDocument()
    cursor = QTextCursor(document)
    before = sys.getrefcount(None)
    for _ in range(100_000):
        thing.setObjectName("x")
    for _ in range(2_000):
        cursor.insertText("token ")
        document.setModified(False)
    assert sys.getrefcount(None) > before - _HANDFUL
