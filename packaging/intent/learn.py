"""Fits the intent model: multinomial logistic regression with L2, full-batch Adam. Deterministic."""

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from intent.sentences import Sample, traditional
from laya_desktop.engine.routing import intent
from laya_desktop.engine.routing.lexicon import Group, words
from laya_desktop.engine.routing.scan import Scan, scan

_MIN_COUNT = 3
_STEPS = 240
_RATE = 0.05
_L2_FACTS = 4e-4
_L2_TOKENS = 1e-4
_OWN_SHARE = 0.6
_OTHER_LANGUAGES = 0.25

Floats = NDArray[np.float64]


def fit(samples: Sequence[Sample]) -> tuple[dict[Hashable, int], NDArray[np.float32]]:
    """The rows and the weights of a model for these samples."""
    scans = [scan(sample.text) for sample in samples]
    rows = _vocabulary(scans, samples)
    empty = intent.Model(rows, np.zeros((intent.FACTS + len(rows), len(intent.TASKS)), np.float32))
    weights = _descend(*_matrix(empty, scans), _targets(samples), _shares(samples), intent.FACTS + len(rows))
    rows, weights = _with_traditional(rows, weights)
    return rows, weights.astype(np.float32)


def _vocabulary(scans: Sequence[Scan], samples: Sequence[Sample]) -> dict[Hashable, int]:
    """Tokens of the lexicon and those that occur often enough."""
    counts: Counter[Hashable] = Counter()
    for found in scans:
        counts.update(set(intent.tokens(found)))
    lexicon = [word for group in Group for word in words()[group]]
    frequent = sorted((token for token, count in counts.items() if count >= _MIN_COUNT), key=repr)
    return {token: intent.FACTS + row for row, token in enumerate(dict.fromkeys([*lexicon, *frequent]))}


def _matrix(
    model: intent.Model, scans: Sequence[Scan]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Starts of the samples, and their rows with the values of these."""
    starts, columns, values = [], [], []
    for found in scans:
        facts, lexical = model.rows(found)
        starts.append(len(columns))
        columns += [*facts, *lexical]
        values += [1.0] * len(facts) + [max(1, len(lexical)) ** -0.5] * len(lexical)
    return np.array(starts), np.array(columns), np.array(values)


def _targets(samples: Sequence[Sample]) -> NDArray[np.int64]:
    return np.array([intent.TASKS.index(sample.task) for sample in samples])


def _shares(samples: Sequence[Sample]) -> Floats:
    """Every task weighs the same, `_OWN_SHARE` of it from our own sentences if it has both kinds."""

    def kind(sample: Sample) -> tuple[str, bool]:
        return sample.task, sample.source.startswith("own")

    def worth(sample: Sample) -> float:
        return 1.0 if sample.lang in ("en", "zh") else _OTHER_LANGUAGES

    totals: Counter[tuple[str, bool]] = Counter()
    for sample in samples:
        totals[kind(sample)] += worth(sample)
    shares = []
    for sample in samples:
        task, own = kind(sample)
        part = (_OWN_SHARE if own else 1 - _OWN_SHARE) if totals[task, not own] else 1.0
        shares.append(worth(sample) * part / totals[task, own])
    return np.array(shares) / len({sample.task for sample in samples})


def _descend(
    starts: NDArray[np.int64],
    columns: NDArray[np.int64],
    values: Floats,
    targets: NDArray[np.int64],
    shares: Floats,
    size: int,
) -> Floats:
    """Minimise the weighted cross-entropy plus L2."""
    count = len(intent.TASKS)
    weights = np.zeros((size, count))
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    decay = np.full((size, 1), _L2_TOKENS)
    decay[: intent.FACTS] = _L2_FACTS
    owner = np.repeat(np.arange(len(starts)), np.diff([*starts, len(columns)]))
    wanted = np.eye(count)[targets]
    for step in range(1, _STEPS + 1):
        logits = np.add.reduceat(weights[columns] * values[:, None], starts)
        powers = np.exp(logits - logits.max(1, keepdims=True))
        error = (powers / powers.sum(1, keepdims=True) - wanted) * shares[:, None]
        spread = error[owner] * values[:, None]
        slope = np.stack([np.bincount(columns, spread[:, task], size) for task in range(count)], 1)
        slope += decay * weights
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope * slope
        rate = _RATE * min(1.0, 4 * (1 - step / (_STEPS + 1)))
        weights -= rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return weights


def _with_traditional(rows: dict[Hashable, int], weights: Floats) -> tuple[dict[Hashable, int], Floats]:
    """Give every Chinese token that lacks one a twin in traditional characters."""
    table = str.maketrans(traditional())
    twins = {token.translate(table): row for token, row in rows.items() if isinstance(token, str)}
    fresh = {token: row for token, row in twins.items() if token not in rows}
    size = len(weights)
    added = {token: size + index for index, token in enumerate(fresh)}
    return rows | added, np.concatenate([weights, weights[list(fresh.values())]])
