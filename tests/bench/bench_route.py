"""What a routing decision costs: rules, features and intent included, in this process.

Arguments: ``[--decisions N]``. Prints one JSON object a line and fails if a figure is beyond its bound.
The prompts differ from one decision to the next, so that nothing is cached but what the app would cache too.
Run it on a quiet machine.
"""

import argparse
import gc
import itertools
import json
import random
import statistics
import sys
import time
from collections.abc import Iterator

from laya_desktop.config.schema import ModelEntry, RouterConfig, Rule
from laya_desktop.core.events import ModelStatus
from laya_desktop.core.types import ChatRequest, Message, ModelInfo, ModelState, Role
from laya_desktop.engine.history import History
from laya_desktop.engine.routing.conversations import Conversations
from laya_desktop.engine.routing.router import Router
from laya_desktop.engine.routing.situation import Situation

_SYLLABLES = (
    "pa",
    "rin",
    "que",
    "voi",
    "sha",
    "der",
    "con",
    "tra",
    "or",
    "led",
    "vi",
    "stem",
    "ka",
    "lo",
    "tion",
)
_TEXT = (
    "I keep a small shop and write down every sale in a table, but since last week the totals do not add up. "
    "My neighbour thinks that returned goods are counted twice; I am not so sure. Could you look at how I do "
    "it and tell me where it goes wrong? First I note the date, then the article, the number and the price. "
    "At the end of the day 3 or 4 entries are corrected by hand. "
)


def _word(draw: random.Random) -> str:
    return "".join(draw.choices(_SYLLABLES, k=3))


def _rules(count: int) -> tuple[Rule, ...]:
    """Rules of every kind, of which none decides: the whole list is looked at."""
    kinds = itertools.cycle(
        [
            lambda word: {"keywords_any": [word, f"fix {word}", f"{word}s"]},
            lambda word: {"keywords_all": [word, "please"], "min_chars": 20},
            lambda word: {"task": "code", "has_code": True, "keywords_any": [word]},
            lambda word: {"any": [{"language": "ko"}, {"script": "cyrillic"}, {"caller": "cli"}]},
            lambda word: {"all": [{"min_tokens": 200_000}, {"has_url": True}], "not": {"task": "chat"}},
            lambda word: {"task": "translation", "min_confidence": 0.9, "not": {"keywords_any": [word]}},
            lambda word: {"warm": "model-1", "has_trace": True},
            lambda word: {"memory": "low", "min_messages": 2},
        ]
    )
    draw = random.Random(1)
    conditions = [next(kinds)(_word(draw)) for _ in range(count)]
    return tuple(
        Rule(name=f"rule {n}", when=when, use=f"model-{n % 10}") for n, when in enumerate(conditions)
    )


def _router(models: int, rules: int) -> tuple[Router, Situation]:
    entries = [
        ModelEntry(name=f"model-{n}", path=f"/models/{n}.gguf", tags=("coder",) if n % 5 == 2 else ())
        for n in range(models)
    ]
    statuses = {
        entry.name: ModelStatus(
            name=entry.name,
            backend="gguf",
            path=entry.path,
            state=ModelState.WARM if n % 3 == 0 else ModelState.COLD,
            info=ModelInfo(
                architecture="llama",
                size_bytes=(n % 20 + 1) * 400_000_000,
                parameters=(n % 20 + 1) * 700_000_000,
                has_chat_template=True,
            ),
        )
        for n, entry in enumerate(entries)
    }
    config = RouterConfig(rules=_rules(rules))
    # Contexts are large enough: every model is a candidate.
    router = Router(config, entries, History(), Conversations(), 1_000_000)
    return router, Situation(statuses, time.time())


def _requests(chars: int) -> Iterator[ChatRequest]:
    """Prompts of one length that begin and end differently."""
    draw = random.Random(chars)
    for number in itertools.count():
        words = " ".join(_word(draw) for _ in range(8))
        body = _TEXT * (chars // len(_TEXT) + 1)
        text = f"Question {number} about {words}. {body}"[: chars - len(words)] + words
        yield ChatRequest(id=f"r{number}", messages=(Message(Role.USER, text),))


def measure(
    figure: str, models: int, rules: int, chars: int, decisions: int, bounds: dict[str, float]
) -> bool:
    """Print mean and p99 in milliseconds; False if one is beyond its bound."""
    router, situation = _router(models, rules)
    requests = _requests(chars)
    for request in itertools.islice(requests, 200):
        router.decide(request, situation)
    times: list[float] = []
    gc.collect()
    gc.freeze()  # as the app does when it has started
    for request in itertools.islice(requests, decisions):
        started = time.perf_counter()
        router.decide(request, situation)
        times.append((time.perf_counter() - started) * 1000)
    times.sort()
    values = {"mean": statistics.fmean(times), "p99": times[int(len(times) * 0.99)]}
    for name, value in values.items():
        row = {"bench": "route", "figure": f"{figure}_{name}", "value": round(value, 4), "unit": "ms"}
        row["n"] = decisions
        if name in bounds:
            row["bound"] = bounds[name]
        print(json.dumps(row), flush=True)
    return all(values[name] <= bound for name, bound in bounds.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=10_000)
    count = parser.parse_args().decisions
    good = measure("usual", 10, 50, 1_700, count, {"mean": 0.10, "p99": 0.25})
    good &= measure("long_prompt", 10, 50, 100_000, count, {"p99": 0.35})
    good &= measure("many", 100, 1_000, 1_700, count, {"p99": 0.4})
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
