"""The button in the composer that chooses who answers: the router or one model. UI thread only."""

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QMenu, QPushButton, QSizePolicy

from laya_desktop.core.events import ModelStatus
from laya_desktop.core.types import AUTO_MODEL
from laya_desktop.ui import icons, theme
from laya_desktop.ui.model_text import state_text, state_token
from laya_desktop.ui.style import chevron, rounded, shows_focus
from laya_desktop.ui.widgets import Retranslating


class ModelPicker(Retranslating, QPushButton):
    """Emits `chosen(name)` when the user picks; `auto` comes first."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._models: tuple[ModelStatus, ...] = ()
        self._choice = AUTO_MODEL
        self.setFont(theme.font(theme.SMALL))
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setAutoDefault(False)
        self.clicked.connect(self.open)
        self.retranslate()

    @property
    def choice(self) -> str:
        """A model's name, or `auto`."""
        return self._choice

    def set_choice(self, name: str) -> None:
        """Choose without telling anyone."""
        self._choice = name
        self.retranslate()

    def set_models(self, models: tuple[ModelStatus, ...]) -> None:
        """What the menu offers."""
        self._models = models

    def menu_of_models(self) -> QMenu:
        """The menu as it would open now."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        entries = [(AUTO_MODEL, self.tr("Auto (router)"), "accent")]
        for model in self._models:
            entries.append((model.name, f"{model.name}\t{state_text(model)}", state_token(model)))
        for index, (name, label, token) in enumerate(entries):
            action = menu.addAction(label.replace("&", "&&"))
            action.setData(name)
            action.setIconVisibleInMenu(True)
            if name == self._choice:
                action.setIcon(icons.icon("check", theme.current().accent))
            elif index:
                action.setIcon(_dot(token))
            if index == 0 and self._models:
                menu.addSeparator()
        menu.triggered.connect(lambda action: self._pick(action.data()))
        return menu

    def open(self) -> None:
        """Show the menu above the button."""
        menu = self.menu_of_models()
        corner = self.mapToGlobal(self.rect().topLeft())
        corner.setY(corner.y() - menu.sizeHint().height() - theme.S1)
        menu.popup(corner)

    def _pick(self, name: str) -> None:
        self.set_choice(name)
        self.chosen.emit(name)

    def retranslate(self) -> None:
        label = self.tr("Auto (router)") if self._choice == AUTO_MODEL else self._choice
        self.setText(label.replace("&", "&&"))
        self.setAccessibleName(self.tr("Model: {0}").format(label))
        self.setToolTip(self.tr("Choose who answers"))
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        text = self.text().replace("&&", "&")
        return QSize(min(260, self.fontMetrics().horizontalAdvance(text) + 42), 28)

    def minimumSizeHint(self) -> QSize:
        return QSize(72, 28)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme.current()
        painter = QPainter(self)
        focused = shows_focus(self)
        ground = theme.mix(tokens.accent_tint, tokens.accent, 0.1 if self.underMouse() else 0)
        rounded(painter, self.rect(), self.height() / 2, ground, tokens.focus if focused else None, 2)
        painter.setPen(tokens.color("accent"))
        area = QRect(12, 0, self.width() - 36, self.height())
        text = self.text().replace("&&", "&")
        shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideMiddle, area.width())
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, shown)
        chevron(painter, self.width() - 21, self.height() / 2, tokens.color("accent"))


def _dot(token: str) -> QPixmap:
    image = QPixmap(32, 32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    rounded(painter, QRect(8, 8, 16, 16), 8, theme.current().color(token))
    painter.end()
    image.setDevicePixelRatio(2)
    return image
