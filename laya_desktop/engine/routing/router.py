"""Decides which model answers. No I/O and no locks: microseconds of the engine's loop.

In this order:

1. A model that the request names answers, whatever else is the case.
2. Models that cannot answer are left out: broken, cooling down, without chat template, too small a context.
3. A conversation stays with the model that answered it last, if the turn is short (`FOLLOW_UP_CHARS`) and
   that model can answer. It leaves for a clear new task only: one that is at least `LEAVE` certain (more than
   `intent.CONFIDENT`, which suffices for a first turn) and for which this model is not allowed; or for a rule
   that looks for words in this turn. So "commit it" and "thanks" stay, and "prove that …" leaves a small
   model. Where nobody knows who answered before (a program sent a history we never saw), the longest earlier
   turn of the user tells what the follow-up needs.
4. The first rule decides that holds and has a model which can answer.
5. The task decides which models are allowed (`cards.py`); a task that is not certain gets a large one.
6. Among the models of a rule or a task the strategy chooses.

If anything fails here, the default model answers: the preferred by `priority`, then the first. It also
answers requests without a user turn. A router is made anew for every config; what it remembers is not its
own.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from laya_desktop.config.schema import ModelEntry, RouterConfig, Strategy
from laya_desktop.core.errors import ErrorCode, ErrorInfo, LayaError
from laya_desktop.core.events import ModelStatus
from laya_desktop.core.types import (
    AUTO_MODEL,
    Candidate,
    ChatRequest,
    Decision,
    Explanation,
    Role,
    RuleOutcome,
)
from laya_desktop.engine.history import History
from laya_desktop.engine.names import ModelNames
from laya_desktop.engine.routing import cards as known
from laya_desktop.engine.routing import features as seen
from laya_desktop.engine.routing import intent
from laya_desktop.engine.routing.cards import Card
from laya_desktop.engine.routing.conversations import Answered, Conversations
from laya_desktop.engine.routing.features import Features
from laya_desktop.engine.routing.rules import Rules
from laya_desktop.engine.routing.situation import Situation
from laya_desktop.engine.routing.strategies import Work, choose, predicted_s

log = logging.getLogger(__name__)

FOLLOW_UP_CHARS = 240
LEAVE = 0.8
_SLOW_S = 0.2


class _Choice(NamedTuple):
    """What becomes a `Decision`. `excluded` has a sentence for each model that was not allowed, `scores` what
    the strategy made of the others, `rule_index` the rule that decided (-1: none did)."""

    model: str
    rule: str
    reason: str
    excluded: Mapping[str, str]
    strategy: Strategy
    scores: Mapping[str, float]
    rule_index: int = -1


class Router:
    """Owned by the engine thread, but made in another one: that takes tens of milliseconds."""

    def __init__(
        self,
        config: RouterConfig,
        entries: Sequence[ModelEntry],
        history: History,
        conversations: Conversations,
        context_tokens: int = 4096,
    ) -> None:
        """`context_tokens` is the context of a model without a setting of its own."""
        self._config = config
        self._entries = {entry.name: entry for entry in entries}
        self._names = ModelNames(entries)
        self._history = history
        self._conversations = conversations
        self._context_tokens = context_tokens
        # Rules and fallbacks may use aliases; the models of a decision go by their registered names.
        self._fallbacks = [name for alias in config.fallback_models if (name := self._names.get(alias))]
        self._rules = Rules(config.rules, self._names, lambda tag: {e.name for e in entries if tag in e.tags})
        intent.model()  # read now, not during the first decision
        self._cards: dict[str, tuple[ModelStatus, Card]] = {}

    def decide(self, request: ChatRequest, situation: Situation) -> tuple[Decision, Features | None]:
        """Choose a model; with the features that were looked at, None if that failed.

        Raises LayaError(MODEL_NOT_FOUND) for an unknown name or when no model is registered.
        """
        started = time.perf_counter()
        choice, features = self._chosen(request, situation)
        decision = Decision(
            model=choice.model,
            rule=choice.rule,
            reason=choice.reason,
            task=features.task if features else "chat",
            confidence=features.confidence if features else None,
            candidates=_candidates(choice, situation),
            elapsed_us=(time.perf_counter() - started) * 1e6,
        )
        return decision, features

    def explain(self, request: ChatRequest, situation: Situation) -> Explanation:
        """Decide, and say how: every rule's outcome, every candidate's expected seconds."""
        decision, features = self.decide(request, situation)
        choice, _ = self._chosen(request, situation)
        if features is None:
            return Explanation(decision=decision, features={}, rules=(), strategy=choice.strategy)
        previous = self._conversations.previous(request)
        usable, _ = self._usable(features, situation)
        work = self._work(request, features, situation, previous)
        expected = {name: predicted_s(card, work) for name, card in usable.items()}
        candidates = [
            msgspec.structs.replace(candidate, predicted_s=expected.get(candidate.model))
            for candidate in decision.candidates
        ]
        return Explanation(
            decision=msgspec.structs.replace(decision, candidates=tuple(candidates)),
            features={name: getattr(features, name) for name in features.__struct_fields__ if name != "text"},
            rules=self._outcomes(features, usable, choice, situation) if request.model == AUTO_MODEL else (),
            strategy=choice.strategy,
            previous_model=previous.model if previous else None,
        )

    def fall_back(
        self, failed: Decision, tried: Sequence[str], situation: Situation, error: ErrorInfo
    ) -> Decision | None:
        """The next model of `router.fallback_models` that was not tried, or None. For a prompt that did not
        fit it has a larger context."""
        room = 0
        if error.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED and failed.model in situation.models:
            room = self._card(situation.models[failed.model]).context
        for name in self._fallbacks:
            status = situation.models.get(name)
            if status is None or name in tried:
                continue
            if known.unusable(self._card(status), status, room, situation.now):
                continue
            reason = f"{failed.model} failed: {error.message}"
            return msgspec.structs.replace(failed, model=name, rule="fallback", reason=reason)
        return None

    def _chosen(self, request: ChatRequest, situation: Situation) -> tuple[_Choice, Features | None]:
        """Whatever fails, somebody answers."""
        named = None if request.model == AUTO_MODEL else self._names.resolve(request.model)
        if not situation.models:
            raise _nothing_registered()
        started = time.perf_counter()
        features: Features | None = None
        try:
            features = seen.extract(request)
            if time.perf_counter() - started > _SLOW_S:
                raise TimeoutError("looking at the prompt took too long")
            choice = self._named(named) if named else self._choose(request, features, situation)
        except Exception:
            log.exception("the router failed on request %s", request.id)
            choice = self._named(named) if named else self._default(situation, {}, "The router failed.")
        return choice, features

    def _choose(self, request: ChatRequest, features: Features, situation: Situation) -> _Choice:
        usable, excluded = self._usable(features, situation)
        if not usable:
            return self._hopeless(situation, excluded)
        if not features.user_turns:
            return self._default(situation, excluded, "There is no user turn.")
        previous = self._conversations.previous(request)
        index = self._rules.match(features, situation.models, situation.memory_low, self._accepts(usable))
        rule = self._rules.all[index] if index >= 0 else None
        if features.user_turns > 1 and features.chars <= FOLLOW_UP_CHARS and not (rule and rule.names_words):
            if previous is None:
                features = _with_subject(request, features)
            elif previous.model in usable and not _leaves(previous.model, usable, features):
                reason = f"A short turn stays with {previous.model}, which answered this conversation before."
                return _Choice(previous.model, "conversation", reason, excluded, self._config.strategy, {})
        if rule is not None:
            cards: Sequence[Card] = [card for card in usable.values() if card.name in rule.targets]
            name, reason = rule.name, f"Rule '{rule.name}' matches."
            strategy = rule.strategy or self._config.strategy
            why_not = f"Rule '{rule.name}' does not name it."
        else:
            cards, reason = known.allowed(list(usable.values()), features)
            name, strategy, why_not = f"task:{features.task}", self._config.strategy, _NOT_FOR_TASK
        best, scores = choose(strategy, cards, self._work(request, features, situation, previous))
        if previous is not None and best.name != previous.model:
            reason = f"{reason} {previous.model} answered before."
        excluded |= dict.fromkeys(usable.keys() - scores.keys(), why_not)
        return _Choice(best.name, name, reason, excluded, strategy, scores, index)

    def _usable(self, features: Features, situation: Situation) -> tuple[dict[str, Card], dict[str, str]]:
        """The cards of the models that can answer, and why the others cannot."""
        usable: dict[str, Card] = {}
        excluded: dict[str, str] = {}
        tokens = features.tokens
        for name, status in situation.models.items():
            card = self._card(status)
            if status.error is None and card.has_template and tokens < card.context:
                usable[name] = card  # the usual case, without a call
            elif reason := known.unusable(card, status, tokens, situation.now):
                excluded[name] = reason
            else:
                usable[name] = card
        return usable, excluded

    def _card(self, status: ModelStatus) -> Card:
        """Kept until the status is another one."""
        before = self._cards.get(status.name)
        if before is not None and before[0] is status:
            return before[1]
        card = known.make_card(self._entries.get(status.name), status, self._context_tokens)
        self._cards[status.name] = status, card
        return card

    def _accepts(self, usable: Mapping[str, Card]) -> Callable[[int], bool]:
        rules = self._rules.all
        return lambda index: not rules[index].targets.isdisjoint(usable)

    def _work(
        self, request: ChatRequest, features: Features, situation: Situation, previous: Answered | None
    ) -> Work:
        return Work(features.tokens, request.sampling.max_tokens, previous, situation, self._history)

    def _named(self, name: str) -> _Choice:
        return _Choice(name, "named", "The request names this model.", {}, self._config.strategy, {})

    def _default(self, situation: Situation, excluded: Mapping[str, str], reason: str) -> _Choice:
        """The preferred of the models that can answer, as far as that is known."""
        models = [name for name in situation.models if name not in excluded] or list(situation.models)
        entries = self._entries
        model = min(models, key=lambda name: entries[name].priority if name in entries else 0)
        return _Choice(
            model, "default", f"{reason} The default model answers.", excluded, Strategy.PRIORITY, {}
        )

    def _hopeless(self, situation: Situation, excluded: Mapping[str, str]) -> _Choice:
        """No model can answer. One is named all the same, so that its own error is what people read: the one
        with the largest context if that is what lacks, else the first."""
        cards = [self._card(status) for status in situation.models.values()]
        model = max(
            (
                card
                for card in cards
                if not known.unusable(card, situation.models[card.name], 0, situation.now)
            ),
            key=lambda card: card.context,
            default=cards[0],
        )
        return _Choice(
            model.name, "default", "No model can answer this prompt.", excluded, Strategy.PRIORITY, {}
        )

    def _outcomes(
        self, features: Features, usable: Mapping[str, Card], choice: _Choice, situation: Situation
    ) -> tuple[RuleOutcome, ...]:
        holds = self._rules.outcomes(features, situation.models, situation.memory_low)
        accepts = self._accepts(usable)
        enabled = iter(range(len(holds)))
        outcomes: list[RuleOutcome] = []
        for rule in self._config.rules:
            outcome = "off"
            if rule.enabled:
                index = next(enabled)
                outcome = _outcome(index, holds[index], accepts(index), choice)
            outcomes.append(RuleOutcome(rule=rule.name, outcome=outcome))
        return tuple(outcomes)


_NOT_FOR_TASK = "The task asks for another model."


def _outcome(index: int, holds: bool, accepted: bool, choice: _Choice) -> str:
    if not holds:
        return "no match"
    if not accepted:
        return "no usable model"
    if index == choice.rule_index:
        return "decides"
    return "set aside" if choice.rule_index < 0 else "not reached"


def _leaves(model: str, usable: Mapping[str, Card], features: Features) -> bool:
    """Whether a clear new task asks for another model than the one that answered before."""
    cards, _ = known.allowed(list(usable.values()), features)
    return known.is_clear(features, LEAVE) and all(card.name != model for card in cards)


def _with_subject(request: ChatRequest, features: Features) -> Features:
    """Features with the task of the longest earlier user turn, unless this turn has a clear own task."""
    if features.task != "chat" and known.is_clear(features, LEAVE):
        return features
    turns = [message for message in request.messages if message.role is Role.USER]
    subject = max(turns[:-1], key=lambda message: len(message.content))
    found = seen.extract(msgspec.structs.replace(request, messages=(subject,)))
    return msgspec.structs.replace(
        features,
        task=found.task,
        confidence=found.confidence,
        light=found.light and features.light,
        has_code=found.has_code,
    )


def _candidates(choice: _Choice, situation: Situation) -> tuple[Candidate, ...]:
    """None if the choice was not ours."""
    if choice.rule == "named":
        return ()
    excluded, scores = choice.excluded.get, choice.scores.get
    if choice.strategy is Strategy.MIN_LATENCY:
        return tuple(
            Candidate(model=name, excluded=excluded(name, ""), score=scores(name), predicted_s=scores(name))
            for name in situation.models
        )
    return tuple(
        Candidate(model=name, excluded=excluded(name, ""), score=scores(name)) for name in situation.models
    )


def _nothing_registered() -> LayaError:
    return LayaError(
        ErrorCode.MODEL_NOT_FOUND,
        "No model is registered.",
        hint="Add one under 'models:' in config.yaml.",
        param="model",
    )
