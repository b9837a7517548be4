"""Which model answered a conversation last, so that a short follow-up ("commit it") can stay with it.

A window's conversation has an id. A program sends the whole history with every request: it is known again by
the system prompt and the first user turn. The same rule holds for both, see `router.py`.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

from laya_desktop.core.types import ChatRequest, Role

_CONVERSATIONS = 2000
_CHARS = 512


class Answered(NamedTuple):
    """`tokens` of the prompt are in the cache of `model`."""

    model: str
    tokens: int


class Conversations:
    """Bounded: the one that was quiet the longest is forgotten. Owned by the engine thread."""

    def __init__(self) -> None:
        self._answered: OrderedDict[Hashable, Answered] = OrderedDict()

    def remember(self, request: ChatRequest, model: str, prompt_tokens: int) -> None:
        """`model` accepted this request."""
        key = _key(request)
        if key is not None:
            self._answered[key] = Answered(model, prompt_tokens)
            self._answered.move_to_end(key)
            if len(self._answered) > _CONVERSATIONS:
                self._answered.popitem(last=False)

    def previous(self, request: ChatRequest) -> Answered | None:
        """Who answered last, if this request goes on with a conversation."""
        if not self._answered or sum(message.role is Role.USER for message in request.messages) < 2:
            return None
        key = _key(request)
        return None if key is None else self._answered.get(key)


def _key(request: ChatRequest) -> Hashable:
    """None if there is no user turn. Long turns are told apart by their beginning and their length."""
    if request.conversation_id is not None:
        return request.conversation_id
    parts: list[Hashable] = [request.caller]
    for message in request.messages:
        if message.role in (Role.SYSTEM, Role.USER):
            parts += (message.role, message.content[:_CHARS], len(message.content))
        if message.role is Role.USER:
            return hash(tuple(parts))
    return None
