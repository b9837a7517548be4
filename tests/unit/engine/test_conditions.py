"""Every leaf of a condition can be evaluated."""

from laya_desktop.config.schema import Condition
from laya_desktop.engine.routing import conditions


def test_every_leaf_has_a_function() -> None:
    groups = {"any", "all", "not_"}
    assert set(conditions._LEAVES) == set(Condition.model_fields) - groups
