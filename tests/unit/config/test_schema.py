"""The schema is complete enough to generate a settings page and a reference from it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

import laya_desktop
from laya_desktop.config import routing, schema
from laya_desktop.config.schema import Config
from laya_desktop.engine.routing.conditions import FEATURES

PACKAGE = Path(laya_desktop.__file__).parent
SECTIONS = [
    kind
    for module in (schema, routing)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind.__module__ == module.__name__
]


def fields() -> Iterator[tuple[str, FieldInfo]]:
    for kind in SECTIONS:
        for name, field in kind.model_fields.items():
            yield f"{kind.__name__}.{name}", field


def extra(field: FieldInfo) -> dict[str, Any]:
    assert isinstance(field.json_schema_extra, dict)
    return field.json_schema_extra


@pytest.mark.parametrize(("name", "field"), list(fields()))
def test_every_field_is_described(name: str, field: FieldInfo) -> None:
    assert field.description
    assert field.description.endswith(".")
    assert extra(field)["apply"] in ("live", "reload", "restart")
    assert isinstance(extra(field)["effective"], bool | list)


def test_a_field_that_nothing_reads_says_so() -> None:
    """By name: a field counts as read where anything outside of the schema has an attribute of its name."""
    read = {*FEATURES, "mode"}  # the mode has one value only
    for path in PACKAGE.rglob("*.py"):
        if path.parent != PACKAGE / "config":
            tree = ast.parse(path.read_text(encoding="utf-8"))
            read |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    settings = [(name, field) for name, field in fields() if not name.startswith("Config.")]
    unread = {name: extra(field) for name, field in settings if name.partition(".")[2] not in read}
    assert "MemoryConfig.enable_offload" in unread
    assert [name for name, extras in unread.items() if extras["effective"] is True] == []


@pytest.mark.parametrize(("name", "field"), list(fields()))
def test_every_field_is_in_the_file_of_defaults(name: str, field: FieldInfo) -> None:
    shown = (PACKAGE.parent / "config.yaml").read_text(encoding="utf-8")
    assert re.search(rf"\b{field.alias or name.partition('.')[2]}\b", shown)


def test_sections_have_the_fields_of_the_design() -> None:
    assert list(Config.model_fields) == [
        "router",
        "models",
        "executor",
        "scheduler",
        "memory",
        "server",
        "ui",
        "hub",
    ]


def test_json_schema_can_be_made() -> None:
    properties = Config.model_json_schema()["$defs"]["ServerConfig"]["properties"]
    assert properties["port"]["apply"] == "live"
    assert (properties["port"]["minimum"], properties["port"]["maximum"]) == (0, 65535)


def test_config_is_immutable() -> None:
    with pytest.raises(ValidationError):
        Config().server.port = 1  # type: ignore[misc]
