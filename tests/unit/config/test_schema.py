"""The schema is complete enough to generate a settings page and a reference from it."""

from collections.abc import Iterator

import pytest
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from laya_desktop.config import routing, schema
from laya_desktop.config.schema import Config

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


@pytest.mark.parametrize(("name", "field"), list(fields()))
def test_every_field_is_described(name: str, field: FieldInfo) -> None:
    assert field.description
    assert field.description.endswith(".")
    extra = field.json_schema_extra
    assert isinstance(extra, dict)
    assert extra["apply"] in ("live", "reload", "restart")
    assert isinstance(extra["effective"], bool | list)


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
    assert properties["port"]["apply"] == "restart"
    assert (properties["port"]["minimum"], properties["port"]["maximum"]) == (0, 65535)


def test_config_is_immutable() -> None:
    with pytest.raises(ValidationError):
        Config().server.port = 1  # type: ignore[misc]
