"""The window's conversations: the list's entries, and the open or running sessions. UI thread only."""

from dataclasses import replace
from time import time
from typing import Final

from PySide6.QtCore import QObject, Signal

from laya_desktop.ui.bridge import Bridge
from laya_desktop.ui.chat.chat_list import Entry
from laya_desktop.ui.chat.history import History
from laya_desktop.ui.chat.session import ChatSession

KEPT: Final = 8
"""How many chats stay in memory after they were shown; those that run are not counted."""


class Sessions(QObject):
    """`listed` after the list was read, `entry_changed(id)` after one entry came, changed or went."""

    listed = Signal()
    entry_changed = Signal(str)
    running_changed = Signal()

    def __init__(self, bridge: Bridge, history: History) -> None:
        super().__init__()
        self._bridge, self._history = bridge, history
        self._open: dict[str, ChatSession] = {}  # the one shown last at the end
        self._entries: dict[str, Entry] = {}
        self._deleted: dict[str, Entry] = {}
        self.complete = True
        history.created.connect(self._note_created)
        history.touched.connect(self._note_touched)

    @property
    def entries(self) -> list[Entry]:
        return list(self._entries.values())

    def entry(self, conversation: str) -> Entry | None:
        return self._entries.get(conversation)

    def reload(self) -> None:
        """Read the first page of the list."""
        self._history.page(first=True, done=self._take_page)

    def load_more(self) -> None:
        """Read the next page of the list."""
        self._history.page(first=False, done=self._take_page)

    def fresh(self) -> ChatSession:
        """A chat that is not stored yet."""
        return self._watch(ChatSession(self._bridge, self._history))

    def open(self, conversation: str) -> ChatSession:
        """The session of a stored chat; its turns arrive with `filled`."""
        session = self._open.pop(conversation, None)
        if session is None:
            session = self._watch(ChatSession(self._bridge, self._history, conversation))
            entry = self._entries.get(conversation)
            session.title = entry.title if entry is not None else ""
            self._history.turns(conversation, session.fill, lambda: self._forget(conversation))
        self._keep(conversation, session)
        return session

    def running(self) -> set[str]:
        """Conversations whose answer is on its way."""
        return {name for name, session in self._open.items() if session.running}

    def rename(self, conversation: str, title: str) -> None:
        session = self._open.get(conversation)
        if session is not None:
            session.title = title
        if conversation in self._entries:
            self._entries[conversation] = replace(self._entries[conversation], title=title)
        self._history.rename(conversation, title)

    def delete(self, conversation: str) -> None:
        """Stop and delete; `restore` undoes it."""
        session = self._open.pop(conversation, None)
        if session is not None:
            session.stop()
        entry = self._entries.pop(conversation, None)
        if entry is not None:
            self._deleted[conversation] = replace(entry, running=False)
        self._history.delete(conversation)
        self.entry_changed.emit(conversation)

    def restore(self, conversation: str) -> None:
        entry = self._deleted.pop(conversation, None)
        if entry is not None:
            self._entries[conversation] = entry
            self._history.restore(conversation)
            self.entry_changed.emit(conversation)

    def save_all(self) -> None:
        """Store the partial text of every running answer."""
        for session in self._open.values():
            session.save()

    def _watch(self, session: ChatSession) -> ChatSession:
        session.running_changed.connect(self.running_changed)
        return session

    def _keep(self, conversation: str, session: ChatSession) -> None:
        """Hold a session; let go of those that rest and were not shown for longest."""
        self._open[conversation] = session
        resting = [name for name, one in self._open.items() if not one.running]
        for name in resting[:-KEPT]:
            self._forget(name)

    def _forget(self, conversation: str) -> None:
        """Open this chat from the disk the next time."""
        self._open.pop(conversation, None)

    def _take_page(self, entries: list[Entry], complete: bool) -> None:
        running = self.running()
        for entry in entries:
            self._entries[entry.id] = replace(entry, running=entry.id in running)
        self.complete = complete
        self.listed.emit()

    def _note_created(self, session: ChatSession) -> None:
        conversation = session.conversation
        assert conversation is not None
        self._keep(conversation, session)
        self._entries[conversation] = Entry(conversation, session.title, time(), running=session.running)
        self.entry_changed.emit(conversation)

    def _note_touched(self, conversation: str) -> None:
        entry = self._entries.get(conversation)
        if entry is not None:
            self._entries[conversation] = replace(entry, updated=time())
            self.entry_changed.emit(conversation)
