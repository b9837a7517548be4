"""The text of one message on screen: a read-only browser as tall as its document. UI thread only.

Selection, copying and accessibility are Qt's own. We paint what text formats cannot say (cards of code,
list markers, bars of quotes), and feed the document in slices that fit between two frames.
"""

from collections import deque
from collections.abc import Iterator
from math import ceil
from time import perf_counter

from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, QRectF, QSizeF, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QFocusEvent,
    QFontMetrics,
    QGuiApplication,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QTextBlock,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QTextBrowser, QTextEdit, QToolTip, QWidget

from laya_desktop.ui import theme
from laya_desktop.ui.chat.document import AnswerDocument
from laya_desktop.ui.chat.formats import CODE_HEADER, CODE_PAD, MARKER_GAP, QUOTE_INDENT, CodeLine, Prop
from laya_desktop.ui.chat.highlight import highlight
from laya_desktop.ui.chat.markdown import MarkdownStream, PlainStream
from laya_desktop.ui.style import focus_ring, rounded

_SLICE = 3000  # characters that are parsed and inserted at once
_COPIED_MS = 1500
_SCROLL_KEYS = frozenset(
    (
        Qt.Key.Key_Up,
        Qt.Key.Key_Down,
        Qt.Key.Key_PageUp,
        Qt.Key.Key_PageDown,
        Qt.Key.Key_Home,
        Qt.Key.Key_End,
        Qt.Key.Key_Space,
        Qt.Key.Key_Escape,
    )
)


class TextBody(QTextBrowser):
    """Shows Markdown or plain text. The owner sets its width, asks for its height and calls `advance`."""

    link_clicked = Signal(str, QPoint)
    """An address, and where on the screen to ask about it."""
    dragged_beyond = Signal(QPoint)
    """A selection is being dragged; where, in global coordinates."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = AnswerDocument(self)
        self.setDocument(self._text)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setLineWrapMode(QTextEdit.LineWrapMode.FixedPixelWidth)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setOpenLinks(False)
        self.setMouseTracking(True)
        self.viewport().setBackgroundRole(QPalette.ColorRole.Window)
        for widget in (self, self.viewport()):
            widget.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self.anchorClicked.connect(self._on_anchor)
        self._stream: MarkdownStream | PlainStream = PlainStream()
        self._pending: deque[str] = deque()
        self._final = False
        self._width = -1
        self._jobs: deque[Iterator[bool]] = deque()
        self._moving: Iterator[bool] = iter(())
        self._ring = False
        self._copied = -1
        self._copied_timer = QTimer(self)
        self._copied_timer.setSingleShot(True)
        self._copied_timer.setInterval(_COPIED_MS)
        self._copied_timer.timeout.connect(self._forget_copied)

    # Text

    def start(self, *, plain: bool, live: bool) -> None:
        """Begin anew, empty."""
        self._text.clear_all()
        self._jobs.clear()
        self._pending.clear()
        self._final = False
        self._stream = PlainStream() if plain else MarkdownStream(live=live)

    def set_text(self, text: str, *, plain: bool) -> None:
        """Queue a whole text; `advance` inserts it."""
        self.start(plain=plain, live=False)
        if isinstance(self._stream, MarkdownStream):
            self._stream.preload(text)
        self.feed(text)
        self._final = True

    def feed(self, text: str) -> None:
        """Queue more text."""
        at = 0
        while len(text) - at > _SLICE:
            end = text.find("\n", at + _SLICE // 2, at + _SLICE) + 1 or at + _SLICE
            self._pending.append(text[at:end])
            at = end
        self._pending.append(text[at:])

    def finish(self) -> None:
        """No more text will come."""
        self._final = True
        self._pending.append("")

    def is_loaded(self) -> bool:
        """Whether everything fed is in the document."""
        return not self._pending

    def advance(self, budget_s: float) -> bool:
        """Put queued text into the document for about `budget_s` seconds. Whether some is left."""
        begun = perf_counter()
        while self._pending:
            self._stream.feed(self._pending.popleft())
            self._text.apply(self._stream.update(final=self._final and not self._pending))
            self._text.size()  # lays out now, so that the time counts
            for position in self._text.closed_code:
                self._jobs.append(highlight(self._text, position))
            self._text.closed_code.clear()
            if perf_counter() - begun >= budget_s:
                break
        return bool(self._pending)

    def work(self, budget_s: float) -> bool:
        """Do pending embellishment for about `budget_s` seconds. Whether some is left: to be done now, or
        once another thread has delivered what it needs (then this returns early)."""
        begun = perf_counter()
        while self._jobs:
            for ready in self._jobs[0]:
                if not ready or perf_counter() - begun >= budget_s:
                    return True
            self._jobs.popleft()
        return False

    def has_work(self) -> bool:
        return bool(self._jobs)

    def recolour(self) -> None:
        """Follow the theme."""
        self._text.recolour()
        for position in self._text.code_starts():
            self._jobs.append(highlight(self._text, position))
        self.viewport().update()

    def selected_text(self) -> str:
        cursor = self.textCursor()
        return self._text.text_between(cursor.selectionStart(), cursor.selectionEnd())

    def answer(self) -> AnswerDocument:
        return self._text

    # Geometry

    def set_text_width(self, width: int) -> None:
        """Wrap at `width` pixels."""
        if width != self._width:
            moved = self._width > 0 and self._text.has_seams()
            self._width = width
            self.setLineWrapColumnOrWidth(width)
            if moved:
                if self._moving in self._jobs:
                    self._jobs.remove(self._moving)
                self._moving = self._move_seams()
                self._jobs.append(self._moving)

    def _move_seams(self) -> Iterator[bool]:
        for _ in self._text.move_seams():
            yield True

    def text_height(self) -> int:
        """Pixels the document needs at its present width."""
        return ceil(self._text.size().height()) + self._text.end_pad()

    def ideal_width(self) -> int:
        """The width of the longest line, in pixels."""
        return ceil(self._text.idealWidth())

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        self._paint_ground(painter, event.rect().top(), event.rect().bottom())
        painter.end()
        super().paintEvent(event)
        if self._ring:
            focus_ring(QPainter(self.viewport()), self.viewport().rect(), theme.S1)

    def _paint_ground(self, painter: QPainter, top: int, bottom: int) -> None:
        block = self._block_at(top).previous()
        if not block.isValid():
            block = self._text.begin()
        run: QRectF | None = None
        head: QTextBlock | None = None
        while block.isValid():
            made = block.blockFormat()
            if made.hasProperty(Prop.CELL):
                block = block.next()
                continue
            area = _area(block)
            if area.top() - CODE_HEADER - CODE_PAD > bottom:
                break
            code = made.property(Prop.CODE)
            if run is not None and code != CodeLine.OTHER:
                self._paint_card(painter, run, head, closed=True)
                run = head = None
            if code:
                if run is None:
                    head = block if code == CodeLine.FIRST else None
                    above = CODE_HEADER + CODE_PAD if head is not None else CODE_HEADER * 2
                    left = made.leftMargin() - theme.S3
                    run = QRectF(left, area.top() - above, self._width - left, 0)
                run.setBottom(area.bottom())
            elif made.hasProperty(Prop.RULE):
                left = made.leftMargin()
                painter.fillRect(QRectF(left, area.top(), self._width - left, 1), theme.current().line)
            if made.hasProperty(Prop.QUOTE) or made.hasProperty(Prop.MARKER):
                self._paint_margin(painter, block, area)
            block = block.next()
        if run is not None:
            self._paint_card(painter, run, head, closed=not block.isValid())

    def _block_at(self, y: float) -> QTextBlock:
        hit = self._text.documentLayout().hitTest(QPointF(0, y), Qt.HitTestAccuracy.FuzzyHit)
        return self._text.findBlock(max(0, hit))

    def _paint_card(self, painter: QPainter, run: QRectF, head: QTextBlock | None, *, closed: bool) -> None:
        tokens = theme.current()
        card = run.adjusted(0, 0, 0, CODE_PAD if closed else CODE_HEADER * 2)
        rounded(painter, card, theme.RADIUS, tokens.code_background, tokens.line)
        if head is None:
            return
        painter.setFont(theme.font(theme.SMALL))
        painter.setPen(tokens.color("muted"))
        header = QRectF(card.left(), card.top(), card.width(), CODE_HEADER)
        painter.fillRect(QRectF(header.left() + 1, header.bottom(), header.width() - 2, 1), tokens.line)
        inner = header.adjusted(theme.S3, 0, -theme.S3, 0)
        label = str(head.blockFormat().property(Prop.LANGUAGE) or self.tr("code"))
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(inner, middle | Qt.AlignmentFlag.AlignLeft, label)
        painter.drawText(inner, middle | Qt.AlignmentFlag.AlignRight, self._copy_label(head))

    def _copy_label(self, head: QTextBlock) -> str:
        return self.tr("Copied") if head.position() == self._copied else self.tr("Copy")

    def _paint_margin(self, painter: QPainter, block: QTextBlock, area: QRectF) -> None:
        tokens = theme.current()
        made = block.blockFormat()
        before = block.previous()
        pad = CODE_PAD if made.hasProperty(Prop.CODE) else 0
        head = pad + CODE_HEADER if made.property(Prop.CODE) == CodeLine.FIRST else 0
        for level in range(made.property(Prop.QUOTE) or 0):
            goes_on = (before.blockFormat().property(Prop.QUOTE) or 0) > level
            top = _area(before).bottom() if goes_on else area.top() - head
            bar = QRectF(level * QUOTE_INDENT, top, 3, area.bottom() + pad - top)
            painter.fillRect(bar, tokens.line)
        marker = made.property(Prop.MARKER)
        if marker:
            line = block.layout().lineAt(0)
            base = area.top() + (line.y() + line.ascent() if line.isValid() else area.height())
            painter.setFont(self._text.defaultFont())
            painter.setPen(tokens.color("text"))
            width = painter.fontMetrics().horizontalAdvance(marker)
            right = made.leftMargin() + made.textIndent() - MARKER_GAP
            painter.drawText(QPointF(right - width, base), marker)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._ring = event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._ring = False
        self.viewport().update()

    def _copy_target(self, at: QPoint) -> QTextBlock | None:
        """The first line of the code whose Copy is at this place."""
        found = self._block_at(at.y())
        for block in (found, found.next()):
            if block.isValid() and block.blockFormat().property(Prop.CODE) == CodeLine.FIRST:
                bottom = _area(block).top() - CODE_PAD
                label = QFontMetrics(theme.font(theme.SMALL)).horizontalAdvance(self._copy_label(block))
                if bottom - CODE_HEADER <= at.y() < bottom and at.x() >= self._width - label - 2 * theme.S3:
                    return block
        return None

    def copy_code(self, position: int) -> None:
        """Put the code around `position` on the clipboard."""
        first, _ = self._text.code_lines(position)
        QGuiApplication.clipboard().setText(self._text.code_text(position))
        self._copied = first.position()
        self._copied_timer.start()
        self.viewport().update()

    def _forget_copied(self) -> None:
        self._copied = -1
        self.viewport().update()

    # Input

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            head = self._copy_target(event.position().toPoint())
            if head is not None:
                self.copy_code(head.position())
                return
        super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.dragged_beyond.emit(event.globalPosition().toPoint())
        elif not self.anchorAt(event.position().toPoint()):
            over = self._copy_target(event.position().toPoint()) is not None
            shape = Qt.CursorShape.PointingHandCursor if over else Qt.CursorShape.IBeamCursor
            self.viewport().setCursor(shape)

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            address = self.anchorAt(event.pos())
            if address:
                QToolTip.showText(event.globalPos(), address, self)
            else:
                QToolTip.hideText()
            return True
        return super().viewportEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the transcript scrolls

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _SCROLL_KEYS:
            event.ignore()
            return
        super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = self.createStandardContextMenu(event.pos())
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        position = self.cursorForPosition(event.pos()).position()
        if self._text.findBlock(position).blockFormat().property(Prop.CODE):
            menu.addSeparator()
            menu.addAction(self.tr("Copy code"), lambda: self.copy_code(position))
        menu.popup(event.globalPos())

    def createMimeDataFromSelection(self) -> QMimeData:
        data = QMimeData()
        data.setText(self.selected_text())
        data.setHtml(self.textCursor().selection().toHtml())
        return data

    def doSetSource(self, name: QUrl, kind: int = 0) -> None:
        """A browser goes nowhere here."""

    def _on_anchor(self, url: QUrl) -> None:
        under_mouse = self.viewport().mapFromGlobal(self.cursor().pos())
        inside = self.viewport().rect().contains(under_mouse)
        at = under_mouse if inside else self.cursorRect().bottomLeft()
        self.link_clicked.emit(url.toString(), self.viewport().mapToGlobal(at))


def _area(block: QTextBlock) -> QRectF:
    """Where a paragraph outside of tables lies. `blockBoundingRect` is wrong for the one after a table."""
    layout = block.layout()
    height = max(1, layout.lineCount()) * block.blockFormat().lineHeight()
    return QRectF(layout.position(), QSizeF(layout.boundingRect().width(), height))
