"""One conversation while it runs. It lives on while another chat is shown: chats stream side by side.

UI thread only; events come from the bridge, writing goes through `History`.
"""

from time import monotonic
from typing import Final
from uuid import uuid4

from PySide6.QtCore import QObject, QTimer, Signal

from laya_desktop.core.errors import ErrorCode
from laya_desktop.core.events import (
    Accepted,
    Cancelled,
    Delta,
    Failed,
    Finished,
    Loading,
    Prefill,
    Queued,
    RequestEvent,
    Routed,
)
from laya_desktop.core.types import AUTO_MODEL, Caller, ChatRequest, Message, Role, Sampling
from laya_desktop.store.conversations import StoredMessage
from laya_desktop.ui.bridge import Bridge
from laya_desktop.ui.chat.history import History
from laya_desktop.ui.chat.turn import Phase, Turn

_SAVE_MS: Final = 1000
_FILL: Final = 0.6
"""Share of the context that the kept turns may fill after dropping: the rest is for the answer."""


class ChatSession(QObject):
    """Signals carry the turn they are about; `running_changed` brackets an answer."""

    filled = Signal()
    added = Signal(object)
    removed = Signal(object)
    streamed = Signal(object, str)
    changed = Signal(object)
    running_changed = Signal()

    def __init__(self, bridge: Bridge, history: History, conversation: str | None = None) -> None:
        super().__init__()
        self._bridge, self._history = bridge, history
        self.conversation = conversation
        self.stored_as = conversation
        """The same, set by the worker thread as soon as the chat is on disk; only that thread reads it."""
        self.unwritten: dict[str, StoredMessage] = {}
        """Turns that wait to be written, by id; the worker thread's too."""
        self.title = ""
        self.turns: list[Turn] = []
        self.loaded = conversation is None
        self._model = AUTO_MODEL
        self.sampling = Sampling()
        self._request: str | None = None
        self._answer: Turn | None = None
        self._started = 0.0
        self._unsaved = False
        self._dropping = False
        self._saver = QTimer(self)
        self._saver.setInterval(_SAVE_MS)
        self._saver.timeout.connect(self.save)

    @property
    def running(self) -> bool:
        """Whether an answer is on its way."""
        return self._request is not None

    @property
    def model(self) -> str:
        """Who answers: the chosen model, or `auto` while the config does not have it."""
        return self._model if self._bridge.model(self._model) is not None else AUTO_MODEL

    @model.setter
    def model(self, name: str) -> None:
        self._model = name

    @property
    def questions(self) -> int:
        """How many turns the user took."""
        return sum(turn.role == Role.USER for turn in self.turns)

    @property
    def context(self) -> tuple[int, int] | None:
        """Context tokens used after the latest answer, and the limit."""
        for turn in reversed(self.turns):
            if turn.usage is not None and turn.context_tokens:
                return turn.usage.prompt_tokens + turn.usage.completion_tokens, turn.context_tokens
        return None

    def fill(self, turns: list[Turn]) -> None:
        """Take over the stored turns. A question that never got an answer offers to ask again."""
        self.turns = turns
        self.loaded = True
        if turns and turns[-1].role == Role.USER:
            self.turns.append(Turn(Role.ASSISTANT, phase=Phase.STOPPED))
        self.filled.emit()

    def send(self, text: str) -> None:
        """Store the user's message and ask for an answer; ignored while one is on its way, and until the
        turns before it are there."""
        if self.running or not self.loaded:
            return
        question = Turn(Role.USER, text)
        self.turns.append(question)
        self.added.emit(question)
        self._history.put(self, question)
        self._ask(Turn(Role.ASSISTANT))

    def stop(self) -> None:
        """End the answer; what is there stays."""
        if self._request is not None:
            self._bridge.cancel(self._request)

    def retry(self, turn_id: str) -> None:
        """Ask for the answer `turn_id` again, in its place; only the latest answer can be."""
        turn = next((turn for turn in self.turns if turn.id == turn_id), None)
        if turn is None or self.running or turn is not self.turns[-1] or turn.role != Role.ASSISTANT:
            return
        self.turns.pop()
        self.removed.emit(turn)
        self._ask(Turn(Role.ASSISTANT, id=turn.id))

    def drop_oldest_and_retry(self, turn_id: str) -> None:
        """Leave the oldest turns out of what is sent, visibly, and ask again; repeats until it fits."""
        if self.leave_out_oldest():
            self._dropping = True
            self.retry(turn_id)

    def can_drop(self) -> bool:
        """Whether there is an older turn to leave out."""
        return len(self._sent_turns()) > 1

    def leave_out_oldest(self) -> int:
        """Mark the oldest turns that are still sent, never a system turn nor the last question."""
        sent = self._sent_turns()
        surplus = self._surplus(sent)
        dropped = 0
        for turn in sent[:-1]:
            # An answer goes with its question, so that what is sent begins with a user's turn.
            if dropped >= surplus and turn.role == Role.USER:
                break
            turn.left_out = True
            dropped += 1
            self.changed.emit(turn)
        return dropped

    def save(self) -> None:
        """Store what the answer has so far."""
        if self._answer is not None and self._unsaved:
            self._unsaved = False
            self._history.put(self, self._answer)

    def _sent_turns(self) -> list[Turn]:
        return [
            turn
            for turn in self.turns
            if not turn.left_out
            and turn.content
            and turn.role != Role.SYSTEM
            and turn is not self._answer
            and turn.phase is not Phase.FAILED
        ]

    def _surplus(self, sent: list[Turn]) -> int:
        """How many turns to leave out: as many as the last known context asks for, else half."""
        known = next((turn for turn in reversed(self.turns) if turn.usage and turn.context_tokens), None)
        if known is None or known.usage is None or self._dropping:
            return max(1, len(sent) // 2)
        upto = self.turns[: self.turns.index(known) + 1]
        characters = sum(len(turn.content) for turn in upto if not turn.left_out) or 1
        rate = (known.usage.prompt_tokens + known.usage.completion_tokens) / characters
        room = _FILL * known.context_tokens / max(rate, 0.05)
        kept = 0
        for number, turn in enumerate(reversed(sent)):
            kept += len(turn.content)
            if kept > room:
                return max(1, len(sent) - number)
        return 1

    def _messages(self) -> tuple[Message, ...]:
        system = [turn for turn in self.turns if turn.role == Role.SYSTEM]
        return tuple(Message(turn.role, turn.content) for turn in (*system, *self._sent_turns()))

    def _ask(self, answer: Turn) -> None:
        answer.phase = Phase.ROUTING
        request = ChatRequest(
            id=uuid4().hex,
            messages=self._messages(),
            model=self.model,
            sampling=self.sampling,
            caller=Caller.CHAT,
            conversation_id=self.conversation,
        )
        self._answer, self._request = answer, request.id
        self._started = monotonic()
        self.turns.append(answer)
        self.added.emit(answer)
        self._saver.start()
        self.running_changed.emit()
        self._bridge.submit(request, self._receive)

    def _receive(self, events: list[RequestEvent]) -> None:
        answer = self._answer
        if answer is None:
            return
        pieces: list[str] = []
        for event in events:
            if isinstance(event, Delta):
                if answer.first_token_s is None:
                    answer.first_token_s = monotonic() - self._started
                pieces.append(event.text)
            else:
                self._apply(answer, event)
        if pieces:
            self._write(answer, "".join(pieces))
        if answer.phase.final:
            self._end(answer)
        elif len(pieces) < len(events):
            self.changed.emit(answer)

    def _apply(self, answer: Turn, event: RequestEvent) -> None:
        match event:
            case Routed(decision=decision):
                answer.decision, answer.model = decision, decision.model
            case Queued(position=position):
                answer.phase, answer.progress = Phase.QUEUED, position
            case Loading(model=model, progress=progress):
                answer.phase, answer.progress, answer.model = Phase.LOADING, progress, model
            case Accepted():
                answer.phase, answer.progress = Phase.READING, 0.0
                answer.context_tokens = event.context_tokens
            case Prefill(done=done, total=total):
                answer.phase, answer.progress = Phase.READING, done / max(1, total)
            case Finished(usage=usage, timings=timings):
                answer.phase, answer.usage, answer.timings = Phase.DONE, usage, timings
            case Failed(error=error):
                answer.phase, answer.error = Phase.FAILED, error
            case Cancelled():
                answer.phase = Phase.STOPPED

    def _write(self, answer: Turn, text: str) -> None:
        answer.content += text
        if not answer.phase.final and answer.phase is not Phase.WRITING:
            answer.phase = Phase.WRITING
            self.changed.emit(answer)
        self._unsaved = True
        self.streamed.emit(answer, text)

    def _end(self, answer: Turn) -> None:
        self._saver.stop()
        self._request = None
        self._unsaved = True
        self.save()
        self._answer = None
        self.changed.emit(answer)
        self.running_changed.emit()
        overflow = answer.error is not None and answer.error.code == ErrorCode.CONTEXT_LENGTH_EXCEEDED
        if self._dropping and overflow and self.can_drop():
            self.drop_oldest_and_retry(answer.id)
        else:
            self._dropping = False
