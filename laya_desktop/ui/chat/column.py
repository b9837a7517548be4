"""Where messages lie in a column of any length. No widgets; UI thread only, because fonts are measured."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate

from laya_desktop.ui import theme
from laya_desktop.ui.chat.message_view import MessageData, estimate

_WIDTHS = 8  # remembered heights of a message


@dataclass(slots=True)
class Item:
    """A message and its height. `width` is the one that `height` was measured at, 0 for an estimate."""

    data: MessageData
    height: int = 0
    width: int = 0
    known: dict[int, int] = field(default_factory=dict)  # heights by width

    def measured(self, width: int, height: int, *, final: bool) -> bool:
        """Take the true height at `width`; `final` unless text is still missing. Whether it was another."""
        changed = height != self.height
        self.height, self.width = height, width
        if final:
            if len(self.known) >= _WIDTHS:
                self.known.clear()
            self.known[width] = height
        return changed

    def changed(self) -> None:
        """The message is not what was measured."""
        self.width = 0
        self.known.clear()


class Column:
    """Messages from top to bottom. `tops` has one entry more than there are messages; call `sum_up` after
    heights have changed."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.index: dict[str, int] = {}
        self.tops: list[int] = [theme.S5]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, message_id: str) -> Item:
        return self.items[self.index[message_id]]

    def __contains__(self, message_id: str) -> bool:
        return message_id in self.index

    def add(self, messages: Iterable[MessageData], width: int) -> None:
        """Append messages, with heights estimated for `width`."""
        for data in messages:
            self.index[data.id] = len(self.items)
            self.items.append(Item(data, estimate(data, width)))

    def remove(self, message_id: str) -> int:
        """Take a message away; where it was."""
        at = self.index[message_id]
        del self.items[at]
        self.index = {item.data.id: index for index, item in enumerate(self.items)}
        return at

    def clear(self) -> None:
        self.items.clear()
        self.index.clear()

    def change_width(self, width: int) -> None:
        """Use the heights known at another width, or estimates."""
        for item in self.items:
            if item.width != width:
                known = item.known.get(width)
                item.height = known if known is not None else estimate(item.data, width)

    def sum_up(self) -> None:
        steps = (item.height + theme.S5 for item in self.items)
        self.tops = list(accumulate(steps, initial=theme.S5))

    def maximum(self, page: int) -> int:
        """The largest scroll value with `page` pixels in view."""
        return max(0, self.tops[-1] - page)

    def value_of(self, index: int, offset: int, page: int) -> int:
        """The scroll value that shows the top of a message `offset` pixels below the viewport's."""
        top = self.tops[min(index, len(self.items) - 1)]
        return max(0, min(self.maximum(page), top - offset))

    def between(self, top: int, bottom: int) -> range:
        """Indices of the messages that lie between two heights of the column."""
        first = max(0, bisect_right(self.tops, top) - 1)
        return range(first, min(bisect_right(self.tops, bottom), len(self.items)))

    def anchor(self, value: int, page: int) -> tuple[int, int]:
        """What holds the reader's place: the first message that begins in view, with its top's distance from
        the viewport's; one that fills the view is held by its own top."""
        shown = self.between(value, value + page)
        index = shown.start
        if index + 1 in shown and self.tops[index] < value:
            index += 1
        return index, self.tops[index] - value
