"""The routing page: how models are chosen, read from the config, and what was decided. UI thread only."""

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QVBoxLayout, QWidget

from laya_desktop.config.routing import Rule
from laya_desktop.core.types import Decision
from laya_desktop.ui import engine_text, format, theme
from laya_desktop.ui.card_list import CardsModel, CardsView, CardText
from laya_desktop.ui.routing import words
from laya_desktop.ui.services import Services
from laya_desktop.ui.widgets import Card, Chip, PageHeader, Retranslating, Text

_SIDE_BY_SIDE = 860


class RoutingPage(Retranslating, QWidget):
    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._header = PageHeader()
        self._strategy = Chip(tone="accent")
        self._fallback = Chip()
        self._header.facts.addWidget(self._strategy)
        self._header.facts.addWidget(self._fallback)
        self._note = Text(tone="muted", size=theme.SMALL, wrap=True)
        self._rules_model = CardsModel(self._rule_card)
        self.rules = CardsView(self._rules_model)
        self._decisions_model = CardsModel(self._decision_card)
        self.decisions = CardsView(self._decisions_model, framed=False)
        self._decisions_title = Text(bold=True)
        self._no_decisions = Text(tone="muted", size=theme.SMALL, wrap=True)
        self._side = self._decisions_panel()
        self._lay_out()
        services.bridge.config_applied.connect(self.refresh)
        services.log.decision_added.connect(self._show_decisions)
        self.retranslate()

    def retranslate(self) -> None:
        self._header.title.setText(self.tr("Routing"))
        self.rules.setAccessibleName(self.tr("Rules"))
        self.decisions.setAccessibleName(self.tr("Recent decisions"))
        self._decisions_title.setText(self.tr("Recent decisions"))
        self._no_decisions.setText(self.tr("Ask something with “Auto (router)”: each decision appears here."))
        self.refresh()
        self._show_decisions()

    def refresh(self) -> None:
        """Show the config that is in effect."""
        router = self._services.bridge.config.router
        self._strategy.setText(words.strategy(router.strategy.value))
        self._fallback.setText(self.tr("fallback: {0}").format(", ".join(router.fallback_models)))
        self._fallback.setVisible(bool(router.fallback_models))
        self._rules_model.set_rows([*router.rules, None])
        self._note.setText(
            self.tr("Rules are looked at from top to bottom; the first that matches decides.")
            + " "
            + self.tr("For now they are written in config.yaml; editing them here comes in a later version.")
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        wide = self.width() >= _SIDE_BY_SIDE
        direction = QBoxLayout.Direction.LeftToRight if wide else QBoxLayout.Direction.TopToBottom
        if self._columns.direction() != direction:
            self._columns.setDirection(direction)
        self._side.setMaximumWidth(380 if wide else 16_777_215)
        self._side.setMinimumWidth(320 if wide else 0)
        super().resizeEvent(event)

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._header)
        self._columns = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._columns.setContentsMargins(theme.S5, theme.S4, theme.S5, theme.S5)
        self._columns.setSpacing(theme.S4)
        left = QVBoxLayout()
        left.setSpacing(theme.S3)
        left.addWidget(self._note)
        left.addWidget(self.rules, 1)
        self._columns.addLayout(left, 3)
        self._columns.addWidget(self._side, 2)
        column.addLayout(self._columns, 1)

    def _decisions_panel(self) -> QWidget:
        panel = Card()
        panel.body.setContentsMargins(1, theme.S3, 1, theme.S3)
        title = QVBoxLayout()
        title.setContentsMargins(theme.S4, 0, theme.S4, 0)
        title.addWidget(self._decisions_title)
        title.addWidget(self._no_decisions)
        panel.body.addLayout(title)
        panel.body.addWidget(self.decisions, 1)
        return panel

    def _show_decisions(self) -> None:
        rows = list(reversed(self._services.log.decisions))
        self._decisions_model.set_rows(rows)
        self._no_decisions.setVisible(not rows)

    def _rule_card(self, rule: Rule | None) -> CardText:
        if rule is None:
            strategy = words.strategy(self._services.bridge.config.router.strategy.value)
            return CardText(
                title=self.tr("Everything else"),
                text=self.tr("no rule matched: any model that fits, by {0}").format(strategy),
            )
        tail = self.tr("by {0}").format(words.strategy(rule.use.strategy.value)) if rule.use.strategy else ""
        names = rule.use.models or (words.target(rule.use),)
        return CardText(
            title=rule.name,
            corner=(self.tr("on"), "ok") if rule.enabled else (self.tr("off"), "plain"),
            text=words.when(rule),
            below=tuple((f"→ {name}" if not number else name, "accent") for number, name in enumerate(names)),
            tail=tail,
        )

    def _decision_card(self, row: tuple[float, Decision]) -> CardText:
        at, decision = row
        head = " · ".join(part for part in (format.clock(at), engine_text.rule(decision)) if part)
        out = [f"{one.model}: {one.excluded}" for one in decision.candidates if one.excluded]
        return CardText(
            title=decision.model,
            chips=((format.microseconds(decision.elapsed_us), "plain"),),
            corner=(words.task(decision.task), "accent") if decision.task else None,
            text="\n".join((head, engine_text.reason(decision), *out)),
        )
