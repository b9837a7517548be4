"""The list of conversations: groups by date, paging without losing the place, and ten thousand of them."""

from dataclasses import replace
from datetime import datetime, timedelta
from time import thread_time

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QPushButton
from pytestqt.qtbot import QtBot

from laya_desktop.ui.chat.chat_list import ChatListModel, ChatListPanel, Entry
from laya_desktop.ui.chat.undo_bar import UndoBar

NOON = datetime.now().replace(hour=12)


def entry(number: int, days_ago: float = 0) -> Entry:
    at = NOON - timedelta(days=days_ago)
    return Entry(f"id{number}", f"Chat {number}", at.timestamp() - number / 1000)


def rows(model: ChatListModel) -> list[str]:
    return [model.index(number).data() for number in range(model.rowCount())]


def test_groups_by_date(qapp: QApplication) -> None:
    model = ChatListModel()
    model.set_entries([entry(1), entry(2, 1), entry(3, 4), entry(4, 900)], complete=True)
    assert rows(model)[:6] == ["Today", "Chat 1", "Yesterday", "Chat 2", "Last 7 days", "Chat 3"]
    assert rows(model)[7] == "Chat 4"


def test_a_renamed_entry_stays_where_it_is(qapp: QApplication) -> None:
    model = ChatListModel()
    model.set_entries([entry(1), entry(2)], complete=True)
    assert model.setData(model.index(2), "  New name ")
    assert rows(model) == ["Today", "Chat 1", "New name"]
    assert not model.setData(model.index(2), "   ")


def test_a_name_that_is_being_edited_stays_open_when_another_chat_moves_up(qtbot: QtBot) -> None:
    panel = ChatListPanel()
    qtbot.addWidget(panel)
    panel.show()
    panel.model.set_entries([entry(1), entry(2), entry(3)], complete=True)
    panel.view.edit(panel.model.index(1))
    editor = panel.view.findChild(QLineEdit)
    editor.setText("A new name")
    panel.model.put(replace(entry(3), updated=NOON.timestamp() + 5))
    assert rows(panel.model) == ["Today", "Chat 3", "Chat 1", "Chat 2"]
    with qtbot.waitSignal(panel.model.renamed):
        QTest.keyClick(editor, Qt.Key.Key_Return)
    assert rows(panel.model) == ["Today", "Chat 3", "A new name", "Chat 2"]


def test_enter_in_a_name_renames_and_opens_nothing(qtbot: QtBot) -> None:
    panel = ChatListPanel()
    qtbot.addWidget(panel)
    panel.show()
    panel.model.set_entries([entry(1), entry(2)], complete=True)
    panel.view.setCurrentIndex(panel.model.index(2))
    panel.view.edit(panel.model.index(2))
    editor = panel.view.findChild(QLineEdit)
    editor.setText("A new name")
    with qtbot.assertNotEmitted(panel.view.opened), qtbot.waitSignal(editor.destroyed):
        QTest.keyClick(editor, Qt.Key.Key_Return)
    assert rows(panel.model) == ["Today", "Chat 1", "A new name"]


def test_a_further_page_is_inserted(qtbot: QtBot) -> None:
    model = ChatListModel()
    first = [entry(number) for number in range(50)]
    model.set_entries(first, complete=False)
    assert model.canFetchMore(model.index(-1))
    with qtbot.waitSignal(model.rowsInserted), qtbot.assertNotEmitted(model.modelReset):
        model.set_entries([*first, *(entry(number) for number in range(50, 80))], complete=True)
    assert model.rowCount() == 81


def test_ten_thousand_chats_open_fast(qtbot: QtBot) -> None:
    panel = ChatListPanel()
    qtbot.addWidget(panel)
    panel.resize(248, 700)
    panel.show()
    entries = [entry(number, number / 30) for number in range(10_000)]
    started = thread_time()
    panel.model.set_entries(entries, complete=True)
    panel.grab()
    assert thread_time() - started < 0.2


def test_a_double_click_on_the_bin_deletes_one_chat(qtbot: QtBot) -> None:
    panel = ChatListPanel()
    qtbot.addWidget(panel)
    panel.resize(248, 700)
    panel.model.set_entries([entry(1), entry(2), entry(3)], complete=True)
    panel.show()
    view = panel.view
    deleted: list[str] = []
    view.delete_wanted.connect(deleted.append)
    view.delete_wanted.connect(panel.model.remove)
    place = view.bin_rect(view.visualRect(panel.model.index(1))).center()
    left = Qt.MouseButton.LeftButton
    qtbot.mouseClick(view.viewport(), left, pos=place)
    qtbot.mouseDClick(view.viewport(), left, pos=place)
    qtbot.mouseRelease(view.viewport(), left, pos=place)
    assert deleted == ["id1"]
    qtbot.mouseClick(view.viewport(), left, pos=place)
    assert deleted == ["id1", "id2"]


def test_undo_brings_back_every_chat_deleted_meanwhile(qtbot: QtBot) -> None:
    bar = UndoBar()
    qtbot.addWidget(bar)
    undone: list[str] = []
    bar.undone.connect(undone.append)
    bar.offer("one")
    bar.offer("two")
    assert bar.findChild(QLabel).text() == "Chats deleted: 2"
    bar.findChild(QPushButton).click()
    assert undone == ["two", "one"]
    assert bar.isHidden()
    bar.offer("three")
    bar.findChild(QPushButton).click()
    assert undone == ["two", "one", "three"]
