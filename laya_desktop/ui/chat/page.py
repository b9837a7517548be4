"""The chat page: the list, the conversation that is shown, and its composer. UI thread only."""

from PySide6.QtCore import QPoint, Qt, QUrl
from PySide6.QtGui import QCursor, QDesktopServices, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QToolTip, QVBoxLayout, QWidget

from laya_desktop.core.errors import ErrorCode
from laya_desktop.core.events import ModelStatus
from laya_desktop.core.types import Role
from laya_desktop.ui import theme
from laya_desktop.ui.chat.chat_list import ChatListPanel
from laya_desktop.ui.chat.composer import Composer
from laya_desktop.ui.chat.overflow_bar import OverflowBar
from laya_desktop.ui.chat.session import ChatSession
from laya_desktop.ui.chat.sessions import Sessions
from laya_desktop.ui.chat.transcript import COLUMN, Transcript
from laya_desktop.ui.chat.turn import Phase, Turn, why_details
from laya_desktop.ui.chat.turn_view import fields, message
from laya_desktop.ui.chat.welcome import Welcome
from laya_desktop.ui.layouts import Centred
from laya_desktop.ui.services import Services
from laya_desktop.ui.widgets import Chip, IconButton, PageHeader, Retranslating


class ChatPage(Retranslating, QWidget):
    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._narrow = False
        self.sessions = Sessions(services.bridge, services.history)
        self.list = ChatListPanel()
        self.transcript = Transcript()
        self.welcome = Welcome(services)
        self.composer = Composer()
        self.overflow = OverflowBar()
        self._header = PageHeader()
        self._turns = Chip()
        self._toggle = IconButton("sidebar")
        self._session: ChatSession | None = None
        self._deleted_while_shown: str | None = None
        self._lay_out()
        self._connect()
        self.retranslate()
        self._show(self.sessions.fresh())
        self._show_models(services.bridge.models)
        self.sessions.reload()

    @property
    def session(self) -> ChatSession:
        """The chat that is shown."""
        assert self._session is not None
        return self._session

    def retranslate(self) -> None:
        self._toggle.describe(self.tr("Show or hide the chats"))
        self.transcript.setAccessibleName(self.tr("Conversation"))
        self._show_header()
        if self._session is not None:
            for turn in self._session.turns:
                self._refresh(turn)

    def new_chat(self) -> None:
        """Show an empty chat. It is stored once something is sent."""
        if self._session is None or self._session.turns:
            self._show(self.sessions.fresh())
        self.focus_prompt()

    def open_chat(self, conversation: str) -> None:
        """Show a stored chat, with its live text if it streams."""
        self._show(self.sessions.open(conversation))
        if self._narrow:
            self.list.hide()
        self.focus_prompt()

    def focus_prompt(self) -> None:
        self.composer.edit.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def escape(self) -> None:
        """Esc: close a popover, the list where it covers the page, else stop the answer."""
        popover = self.transcript.popover()
        if popover.isVisible():
            popover.hide()
        elif self._narrow and self.list.isVisible():
            self.list.hide()
        elif self.session.running:
            self.session.stop()

    def set_narrow(self, narrow: bool) -> None:
        """In a small window the list lies over the page, and only when it is asked for."""
        if narrow == self._narrow:
            return
        self._narrow = narrow
        self._row.removeWidget(self.list)
        if narrow:
            self.list.hide()
            self._place_list()
            self.list.raise_()
        else:
            self._row.insertWidget(0, self.list)
            self.list.show()

    def save_all(self) -> None:
        """Store the partial text of every answer on its way."""
        self.sessions.save_all()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_list()

    def _lay_out(self) -> None:
        self._header.facts.addWidget(self._turns)
        header_row = self._header.layout()
        assert isinstance(header_row, QHBoxLayout)
        header_row.insertWidget(0, self._toggle)
        header_row.setContentsMargins(theme.S3, 0, theme.S5, 0)
        self._body = QStackedWidget()
        self._body.addWidget(self.welcome)
        self._body.addWidget(self.transcript)
        foot = QWidget()
        foot_column = QVBoxLayout(foot)
        foot_column.setContentsMargins(0, 0, 0, theme.S4)
        foot_column.setSpacing(theme.S2)
        foot_column.addWidget(self.overflow)
        foot_column.addWidget(self.composer)
        middle = QVBoxLayout()
        middle.setSpacing(0)
        middle.addWidget(self._header)
        middle.addWidget(self._body, 1)
        # In line with the transcript, whose scroll bar is always there.
        bar = self.transcript.verticalScrollBar().sizeHint().width()
        middle.addWidget(Centred(foot, COLUMN, right=bar))
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(0)
        self._row.addWidget(self.list)
        self._row.addLayout(middle, 1)

    def _connect(self) -> None:
        self.list.new_wanted.connect(self.new_chat)
        self.list.view.opened.connect(self.open_chat)
        self.list.view.delete_wanted.connect(self._delete)
        self.list.undo_bar.undone.connect(self._undelete)
        self.list.model.renamed.connect(self._rename)
        self.list.model.more_wanted.connect(self.sessions.load_more)
        self.sessions.listed.connect(self._show_list)
        self.sessions.entry_changed.connect(self._entry_changed)
        self.sessions.running_changed.connect(self._mark_running)
        self._toggle.clicked.connect(self._toggle_list)
        self.welcome.example_chosen.connect(self._send)
        self.composer.submitted.connect(self._send)
        self.composer.stop_requested.connect(lambda: self.session.stop())
        self.composer.picker.chosen.connect(self._choose_model)
        self.overflow.new_wanted.connect(self.new_chat)
        self.overflow.drop_wanted.connect(self._drop_oldest)
        self.transcript.link_activated.connect(lambda url: QDesktopServices.openUrl(QUrl(url)))
        self.transcript.retry_requested.connect(lambda turn_id: self.session.retry(turn_id))
        self.transcript.why_requested.connect(self._explain)
        self._services.bridge.models_changed.connect(self._show_models)

    # The chat that is shown

    def _show(self, session: ChatSession) -> None:
        if session is self._session:
            return
        if self._session is not None:
            self._session.disconnect(self)
        self._session = session
        session.filled.connect(self._fill)
        session.added.connect(self._append)
        session.removed.connect(self._remove)
        session.streamed.connect(self._stream)
        session.changed.connect(self._refresh)
        session.running_changed.connect(self._show_running)
        self.composer.picker.set_choice(session.model)
        self._fill()

    def _fill(self) -> None:
        self.transcript.set_messages(
            [message(turn, latest=self._is_latest(turn)) for turn in self.session.turns]
        )
        self._show_body()
        self._show_running()

    def _append(self, turn: Turn) -> None:
        self.transcript.append(message(turn, latest=True))
        if len(self.session.turns) > 1:
            self._refresh(self.session.turns[-2])
        self._show_body()

    def _remove(self, turn: Turn) -> None:
        self.transcript.remove(turn.id)

    def _stream(self, turn: Turn, text: str) -> None:
        self.transcript.stream_text(turn.id, text)

    def _refresh(self, turn: Turn) -> None:
        if turn.role == Role.USER:
            return
        self.transcript.update_message(turn.id, **fields(turn, latest=self._is_latest(turn)))

    def _is_latest(self, turn: Turn) -> bool:
        return turn is self.session.turns[-1]

    def _show_body(self) -> None:
        empty = not self.session.turns and self.session.loaded
        self._body.setCurrentWidget(self.welcome if empty else self.transcript)
        self._show_header()

    def _show_header(self) -> None:
        if self._session is None:
            return
        self._header.title.setText(self._session.title or self.tr("New chat"))
        questions = self._session.questions
        self._turns.setText(self.tr("%n turn(s)", "", questions))
        self._turns.setVisible(questions > 0)
        self.list.view.show_as_open(self._session.conversation)

    def _show_running(self) -> None:
        session = self.session
        self.composer.set_streaming(session.running)
        self.composer.set_ready(session.loaded)
        self.composer.set_context(session.context)
        last = session.turns[-1] if session.turns else None
        error = last.error if last is not None and last.phase is Phase.FAILED else None
        if error is not None and error.code == ErrorCode.CONTEXT_LENGTH_EXCEEDED and not session.running:
            self.overflow.offer(can_drop=session.can_drop())
        else:
            self.overflow.tell_dropped(tuple(turn.content for turn in session.turns if turn.left_out))

    def _send(self, text: str) -> None:
        self.session.send(text)
        self._show_header()

    def _drop_oldest(self) -> None:
        self.session.drop_oldest_and_retry(self.session.turns[-1].id)

    def _choose_model(self, name: str) -> None:
        self.session.model = name

    def _explain(self, turn_id: str) -> None:
        turn = next((turn for turn in self.session.turns if turn.id == turn_id), None)
        if turn is not None and turn.decision is not None:
            QToolTip.showText(QCursor.pos() + QPoint(0, 8), why_details(turn.decision), self.transcript)

    def _show_models(self, models: tuple[ModelStatus, ...]) -> None:
        self.composer.picker.set_models(models)
        self.composer.picker.set_choice(self.session.model)
        self.welcome.set_has_models(bool(models))

    # The list

    def _show_list(self) -> None:
        self.list.model.set_entries(self.sessions.entries, complete=self.sessions.complete)
        self._show_header()

    def _entry_changed(self, conversation: str) -> None:
        entry = self.sessions.entry(conversation)
        if entry is None:
            self.list.model.remove(conversation)
        else:
            self.list.model.put(entry)
        self._show_header()

    def _mark_running(self) -> None:
        self.list.model.set_running(self.sessions.running())

    def _rename(self, conversation: str, title: str) -> None:
        self.sessions.rename(conversation, title)
        self._show_header()

    def _delete(self, conversation: str) -> None:
        if self.session.conversation == conversation:
            self._deleted_while_shown = conversation
            self._show(self.sessions.fresh())
        self.sessions.delete(conversation)
        self.list.undo_bar.offer(conversation)
        self.composer.edit.setFocus()

    def _undelete(self, conversation: str) -> None:
        self.sessions.restore(conversation)
        if conversation == self._deleted_while_shown and not self.session.turns:
            self.open_chat(conversation)

    def _toggle_list(self) -> None:
        self.list.setVisible(not self.list.isVisible())
        self._place_list()
        self.list.raise_()

    def _place_list(self) -> None:
        if self._narrow:
            self.list.setParent(self) if self.list.parent() is not self else None
            top = PageHeader.HEIGHT
            self.list.setGeometry(0, top, ChatListPanel.WIDTH, self.height() - top)
