"""The window as a whole: pages, keys, sizes, banners, switching theme and language, quitting."""

import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt, QTimer
from PySide6.QtWidgets import QApplication, QComboBox
from pytestqt.qtbot import QtBot

from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.core.events import ConfigRejected, MemorySample, ModelsChanged, Notice
from laya_desktop.core.types import ModelState
from laya_desktop.ui import i18n, theme
from laya_desktop.ui.main_window import PAGES
from laya_desktop.ui.models.page import ModelsPage
from laya_desktop.ui.services import ServerState
from laya_desktop.ui.settings.page import _GeneralCard
from laya_desktop.ui.window_state import on_screen
from tests.gui.conftest import Desk
from tests.gui.fake_handle import FakeHandle, model

MakeDesk = Callable[[FakeHandle], Desk]


def test_pages_by_key(qtbot: QtBot, desk: Desk) -> None:
    keys = (Qt.Key.Key_2, Qt.Key.Key_3, Qt.Key.Key_4, Qt.Key.Key_5, Qt.Key.Key_1)
    for key, name in zip(keys, (*PAGES[1:], PAGES[0]), strict=True):
        qtbot.keyClick(desk.window, key, Qt.KeyboardModifier.ControlModifier)
        assert desk.window.shown_page() == name
    qtbot.keyClick(desk.window, Qt.Key.Key_Comma, Qt.KeyboardModifier.ControlModifier)
    assert desk.window.shown_page() == "settings"
    qtbot.keyClick(desk.window, Qt.Key.Key_L, Qt.KeyboardModifier.ControlModifier)
    assert desk.window.shown_page() == "chat"
    assert desk.window.focusWidget() is desk.window.chat.composer.edit


def test_new_chat_by_key(qtbot: QtBot, desk: Desk) -> None:
    desk.window.chat.composer.edit.setPlainText("hello")
    desk.window.chat.composer.send()
    before = desk.window.chat.session
    desk.window.show_page("models")
    qtbot.keyClick(desk.window, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    assert desk.window.shown_page() == "chat"
    assert desk.window.chat.session is not before


def test_every_page_fits_the_smallest_window(qtbot: QtBot, desk: Desk) -> None:
    desk.window.resize(desk.window.minimumSize())
    for name in PAGES:
        desk.window.show_page(name)
        QApplication.processEvents()
        assert desk.window.size() == QSize(640, 420)
    assert desk.window.rail.width() == 52
    assert desk.window.chat.list.isHidden()


def test_the_list_lies_over_a_small_window_and_esc_closes_it(qtbot: QtBot, desk: Desk) -> None:
    desk.window.resize(640, 420)
    chat = desk.window.chat
    qtbot.mouseClick(chat._toggle, Qt.MouseButton.LeftButton)
    assert chat.list.isVisible()
    qtbot.keyClick(desk.window, Qt.Key.Key_Escape)
    assert chat.list.isHidden()
    desk.window.resize(1180, 760)
    assert chat.list.isVisible()


def test_the_theme_switches_live(qtbot: QtBot, qapp: QApplication, desk: Desk) -> None:
    for name in PAGES:
        desk.window.show_page(name)
    started = perf_counter()
    with qtbot.waitSignal(theme.notifier().changed):
        theme.apply(qapp, "dark")
    QApplication.processEvents()
    assert perf_counter() - started < 1.0
    assert theme.is_dark()
    assert desk.window.palette().window().color().name() == theme.DARK.background
    theme.apply(qapp, "light")
    QApplication.processEvents()
    assert desk.window.palette().window().color().name() == theme.LIGHT.background


def test_the_language_switches_live(qtbot: QtBot, qapp: QApplication, desk: Desk) -> None:
    desk.window.show_page("settings")
    assert desk.window.chat.composer.button.text() == "Send"
    i18n.apply(qapp, "zh_CN")
    QApplication.processEvents()
    assert desk.window.chat.composer.button.text() == "发送"
    assert desk.window.chat.composer.picker.text() == "自动（路由）"
    i18n.apply(qapp, "en")
    QApplication.processEvents()
    assert desk.window.chat.composer.button.text() == "Send"


def choose(qtbot: QtBot, combo: QComboBox, value: str) -> None:
    """As the user does: with the keys."""
    combo.setFocus()
    steps = combo.findData(value) - combo.currentIndex()
    for _ in range(abs(steps)):
        qtbot.keyClick(combo, Qt.Key.Key_Down if steps > 0 else Qt.Key.Key_Up)


def combo_named(desk: Desk, name: str) -> QComboBox:
    desk.window.show_page("settings")
    combos = desk.window.page("settings").findChildren(QComboBox)
    return next(combo for combo in combos if combo.accessibleName() == name)


def test_choosing_a_theme_saves_it_and_shows_what_is_in_effect(qtbot: QtBot, desk: Desk) -> None:
    combo = combo_named(desk, "Theme")
    assert combo.currentData() == "system"
    with qtbot.waitSignal(desk.bridge.config_applied):
        choose(qtbot, combo, "light")
    assert desk.handle.saved == [("ui.theme", "light")]
    with qtbot.waitSignal(desk.bridge.config_applied):
        desk.handle.set_config("ui.theme", "dark")  # as an edit of the file
    assert combo.currentData() == "dark"


def test_a_setting_that_cannot_be_saved_is_told_and_shown_as_it_was(qtbot: QtBot, desk: Desk) -> None:
    combo = combo_named(desk, "Language")
    desk.handle.refusal = LayaError(ErrorCode.INVALID_REQUEST, "config.yaml cannot be written.")
    choose(qtbot, combo, "en")
    problem = desk.window.page("settings").findChildren(_GeneralCard)[0]._problem
    qtbot.waitUntil(problem.isVisible)
    assert problem.text() == "config.yaml cannot be written."
    assert combo.currentData() == "system"


def test_a_broken_config_shows_a_banner_until_it_is_mended(qtbot: QtBot, desk: Desk) -> None:
    with qtbot.waitSignal(desk.bridge.config_rejected):
        desk.handle.publish(ConfigRejected(problems=("config.yaml, line 3: unknown key",)))
    assert desk.window.banners.keys() == ("config",)
    desk.bridge.config_applied.emit()
    assert desk.window.banners.keys() == ()


def test_a_taken_port_is_told_and_another_offered(qtbot: QtBot, desk: Desk) -> None:
    desk.state.set_server(ServerState(problem="Port 8080 is in use by nginx.", free_port=8081))
    assert desk.window.banners.keys() == ("server",)
    with qtbot.waitSignal(desk.window.port_wanted) as signal:
        desk.window.banners._banners["server"]._button.click()
    assert signal.args == [8081]
    desk.state.set_server(ServerState(url="http://127.0.0.1:8081"))
    assert desk.window.banners.keys() == ()


def test_without_a_model_the_chat_says_how_to_get_one(qtbot: QtBot, make_desk: MakeDesk) -> None:
    desk = make_desk(FakeHandle())
    assert desk.window.chat.welcome._guide.isVisible()
    with qtbot.waitSignal(desk.bridge.models_changed):
        desk.handle.publish(ModelsChanged(models=(model("small"),)))
    assert not desk.window.chat.welcome._guide.isVisible()


def test_warm_and_unload_from_the_models_page(qtbot: QtBot, make_desk: MakeDesk) -> None:
    desk = make_desk(FakeHandle(model("a", ModelState.COLD), model("b")))
    desk.window.show_page("models")
    page = desk.window.page("models")
    assert isinstance(page, ModelsPage)
    view = page.view
    view.setFocus()
    view.setCurrentIndex(view.model().index(0, 0))
    qtbot.keyClick(view, Qt.Key.Key_Return)
    view.setCurrentIndex(view.model().index(1, 0))
    qtbot.keyClick(view, Qt.Key.Key_Return)
    assert desk.handle.calls == [("load", "a"), ("unload", "b")]


def test_a_refused_load_is_told_on_the_card(qtbot: QtBot, make_desk: MakeDesk) -> None:
    handle = FakeHandle(model("a", ModelState.COLD))
    handle.refusal = LayaError(ErrorCode.INSUFFICIENT_MEMORY, "a needs 43 GB; 27 GB are free.")
    desk = make_desk(handle)
    desk.window.show_page("models")
    page = desk.window.page("models")
    assert isinstance(page, ModelsPage)
    index = page.view.model().index(0, 0)
    page.view.load_wanted.emit("a")
    role = Qt.ItemDataRole.AccessibleTextRole
    qtbot.waitUntil(lambda: "needs 43 GB" in index.data(role))


def test_the_monitor_shows_samples_and_notices(qtbot: QtBot, desk: Desk) -> None:
    gib = 1024**3
    desk.window.show_page("monitor")
    sample = MemorySample(
        at=1.0, limit=16 * gib, used=9 * gib, available=7 * gib, reserved=2 * gib, models={"small": gib}
    )
    with qtbot.waitSignals([desk.bridge.memory_changed, desk.bridge.notice]):
        desk.handle.publish(sample, Notice(at=1.0, kind="loaded", text="small is warm.", model="small"))
    page = desk.window.page("monitor")
    assert page._figures[0].value.text() == "9.0 GB"
    assert page._events.model().rowCount() == 1
    assert "9.0 GB of 16.0 GB" in desk.window.rail._foot.toolTip()


@pytest.mark.parametrize("place", [QRect(-5000, -5000, 900, 600), QRect(9000, 50, 900, 600)])
def test_a_window_comes_back_to_a_screen(qapp: QApplication, place: QRect) -> None:
    screen = qapp.primaryScreen().availableGeometry()
    assert screen.intersects(on_screen(place, QSize(640, 420)))


def test_a_window_on_a_screen_stays(qapp: QApplication) -> None:
    place = QRect(20, 30, 700, 500)
    assert on_screen(place, QSize(640, 420)) == place


def test_closing_leaves_no_thread(qtbot: QtBot, make_desk: MakeDesk) -> None:
    before = set(threading.enumerate())
    desk = make_desk(FakeHandle(model("small")))
    desk.window.chat.composer.edit.setPlainText("hello")
    desk.window.chat.composer.send()
    desk.close()
    assert set(threading.enumerate()) <= before


def test_damaged_chats_are_told(qtbot: QtBot, make_desk: MakeDesk, own_home: Path) -> None:
    (own_home / "data").mkdir(parents=True)
    (own_home / "data" / "conversations.db").write_bytes(b"this is no database" * 100)
    desk = make_desk(FakeHandle(model("small")))
    qtbot.waitUntil(lambda: desk.window.banners.keys() == ("store",))
    assert "was damaged" in desk.window.banners._banners["store"]._text.text()


def test_esc_closes_a_popover_before_it_stops_the_answer(qtbot: QtBot, desk: Desk) -> None:
    chat = desk.window.chat
    chat.composer.edit.setPlainText("hello")
    chat.composer.send()
    chat.transcript.popover().ask("https://example.org", QPoint(50, 50))
    assert chat.transcript.popover().isVisible()
    qtbot.keyClick(chat.composer.edit, Qt.Key.Key_Escape)
    assert not chat.transcript.popover().isVisible()
    assert desk.handle.cancelled == []
    qtbot.keyClick(chat.composer.edit, Qt.Key.Key_Escape)
    assert desk.handle.cancelled == [desk.handle.requests[0].id]


def test_a_window_at_rest_paints_nothing(qtbot: QtBot, desk: Desk) -> None:
    """A paint that asks for the next one would keep a core busy and take it from the models."""
    paints: list[str] = []

    class Counter(QObject):
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            if event.type() is QEvent.Type.Paint:
                paints.append(type(watched).__name__)
            return False

    counter = Counter()
    QApplication.instance().installEventFilter(counter)
    try:
        rounds = QTimer()
        with qtbot.waitSignal(rounds.timeout, timeout=2000):
            rounds.setSingleShot(True)
            rounds.start(600)
        before = len(paints)
        with qtbot.waitSignal(rounds.timeout, timeout=2000):
            rounds.start(600)
        assert len(paints) - before < 20, paints[before : before + 40]
    finally:
        QApplication.instance().removeEventFilter(counter)
    assert desk.window.isVisible()
