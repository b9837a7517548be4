"""From a document to a `Config`: every problem of a file is found and put into a sentence."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from laya_desktop.config.problems import Path, Problem, field_name
from laya_desktop.config.reader import Document
from laya_desktop.config.rule_checks import dead_rules
from laya_desktop.config.scalar import Scalar
from laya_desktop.config.schema import Config

# What other programs call a setting that exists here.
_SYNONYMS = {
    "n_ctx": "context_tokens",
    "num_ctx": "context_tokens",
    "ctx_size": "context_tokens",
    "n_gpu_layers": "gpu_layers",
    "num_gpu": "gpu_layers",
    "model_path": "path",
    "model": "path",
    "max_tokens": "stream_buffer",
    "n_threads": "threads",
    "memory_limit": "reserved_system_gb",
    "api_key": "api_keys",
}


@dataclass(frozen=True)
class Checked:
    """`config` is None if there are problems. `notes` name settings and rules that have no effect."""

    config: Config | None
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def check(document: Document, folder: FilePath | None) -> Checked:
    """Validate a document; relative paths of models start at `folder`. Looks at the disk for those only."""
    config: Config | None = None
    if not isinstance(document.tree, dict | Scalar):
        document.report((), "the file must consist of sections such as 'models:'")
    elif not any(problem.field == "" for problem in document.problems):
        try:
            config = Config.model_validate(document.tree, context={"folder": folder})
        except ValidationError as failure:
            _report_all(document, failure.errors(include_url=False))
        _check_names(document)
    if config is None or document.problems:
        problems = sorted(document.problems, key=lambda problem: (problem.line, problem.column))
        return Checked(None, tuple(dict.fromkeys(problems)))
    return Checked(config, notes=(*_notes(config), *_rule_notes(document, config)))


# Sentences for what the schema refuses


def _report_all(document: Document, errors: list[ErrorDetails]) -> None:
    paths = [_path_in(document.tree, error["loc"]) for error in errors]
    for error, path in zip(errors, paths, strict=True):
        # A list whose items fail is also said to be too short.
        if error["type"] == "too_short" and any(path == other[: len(path)] != other for other in paths):
            continue
        message, hint = _sentence(document.tree, path, error)
        place = document.keys.get(path) if error["type"] == "extra_forbidden" else None
        document.report(path, message, hint, place)


def _path_in(tree: object, location: tuple[int | str, ...]) -> Path:
    """The path of what `location` means: short forms leave out steps that the schema has."""
    path: Path = ()
    for index, part in enumerate(location):
        is_last = index == len(location) - 1
        if isinstance(tree, dict) and (part in tree or is_last):
            tree = tree.get(part)
        elif isinstance(tree, list) and isinstance(part, int) and part < len(tree):
            tree = tree[part]
        else:
            continue
        path = (*path, part)
    return path


def _value_at(tree: Any, path: Path) -> Any:
    for part in path:
        if isinstance(tree, dict):
            tree = tree.get(part)
        elif isinstance(tree, list) and isinstance(part, int):
            tree = tree[part]
    return tree


_EXPECTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "model_type": "a section with keys",
    "dict_type": "a section with keys",
    "model_attributes_type": "a section with keys",
}


def _sentence(tree: object, path: Path, error: ErrorDetails) -> tuple[str, str]:
    """Message and hint."""
    kind, context, value = error["type"], error.get("ctx", {}), _value_at(tree, path)
    if kind == "extra_forbidden":
        return "unknown key", _suggest(path)
    if kind == "missing":
        return "is missing", ""
    if isinstance(value, Scalar) and value == "" and kind != "missing":
        return "has no value", "Remove the line to use the default."
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind]}, found {_show(value)}", _advice(kind, value)
    if kind in ("enum", "literal_error"):
        return f"{_show(value)} is not one of {context['expected']}", _closest(
            value, str(context["expected"])
        )
    if kind == "string_pattern_mismatch":
        return f"{_show(value)} is not one of auto, cpu, cuda, cuda:0, metal or mps", ""
    if kind in _BOUNDS:
        words, key = _BOUNDS[kind]
        return f"{_show(value)} is out of bounds: {words} {context[key]}", ""
    return error["msg"], ""


_BOUNDS = {
    "greater_than_equal": ("it must be at least", "ge"),
    "less_than_equal": ("it must be at most", "le"),
    "greater_than": ("it must be more than", "gt"),
    "string_too_short": ("its length must be at least", "min_length"),
    "string_too_long": ("its length must be at most", "max_length"),
    "too_short": ("its length must be at least", "min_length"),
    "too_long": ("its length must be at most", "max_length"),
}


def _show(value: object) -> str:
    if isinstance(value, Scalar):
        return str(value)
    if isinstance(value, str):
        return f"the text '{value}'" if len(value) <= 60 else f"the text '{value[:60]}…'"
    if isinstance(value, dict):
        return "a section"
    return "a list" if isinstance(value, list | tuple) else str(value)


def _advice(kind: str, value: object) -> str:
    if kind == "bool_type":
        return "Write it without quotes." if value in ("true", "false") else ""
    if kind in ("int_type", "float_type") and isinstance(value, str):
        number = value.strip()
        if not isinstance(value, Scalar) and number.replace(".", "", 1).isdecimal():
            return f"Write {number} without quotes."
        if isinstance(value, Scalar) and isinstance(value.value, float) and value.value.is_integer():
            return f"Write {int(value.value)}."
        return "Write only the number, without a unit."
    return ""


def _closest(value: object, expected: str) -> str:
    choices = expected.replace(" or ", ", ").replace("'", "").split(", ")
    near = difflib.get_close_matches(str(value).lower(), choices, n=1, cutoff=0.5)
    return f"Did you mean '{near[0]}'?" if near else ""


def _suggest(path: Path) -> str:
    """What the user may have meant by an unknown key."""
    key = str(path[-1])
    own = _keys_of(_model_at(path[:-1]))
    candidates = {
        **{old: new for old, new in _SYNONYMS.items() if new in own},
        **{name: name for name in own},
    }
    near = difflib.get_close_matches(key.lower(), candidates, n=1, cutoff=0.6)
    if near:
        return f"Did you mean '{candidates[near[0]]}'?"
    for section, field in Config.model_fields.items():
        if key in _keys_of(_model_of(field)):
            return f"It belongs in the section '{section}'."
    near = difflib.get_close_matches(key.lower(), own, n=1, cutoff=0.0)
    return f"The nearest known key is '{near[0]}'." if near else ""


def _keys_of(model: type[BaseModel] | None) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()] if model else []


def _model_at(path: Path) -> type[BaseModel] | None:
    model: type[BaseModel] | None = Config
    for part in path:
        if isinstance(part, int) or model is None:
            continue
        found = {field.alias or name: field for name, field in model.model_fields.items()}.get(part)
        model = _model_of(found) if found else None
    return model


def _model_of(field: FieldInfo) -> type[BaseModel] | None:
    """The section that a field holds, be it one, several or none."""
    pending: list[Any] = [field.annotation]
    while pending:
        kind = pending.pop()
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
        pending += getattr(kind, "__args__", ())
    return None


# Names that refer to each other


def _check_names(document: Document) -> None:
    names: dict[str, Path] = {}
    for path, name in _model_names(document.tree):
        other = names.setdefault(name.casefold(), path)
        if other is not path:
            line = document.values.get(other, (0, 0))[0]
            document.report(
                path,
                f"the name '{name}' is already taken by {field_name(other)} in line {line}",
                "Choose another.",
            )
    known = [name for _, name in _model_names(document.tree)]
    for path, name in _references(document.tree):
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"Did you mean '{near[0]}'?" if near else "Add it to models or remove it here."
            document.report(path, f"there is no model '{name}'", hint)
    for path, name in _mentions(document.tree):
        if name not in known:
            document.report(path, f"there is no model '{name}'", "Its state cannot be a condition.")
    tags = {tag for _, tag in _texts(document.tree, ("models", None, "tags", None))}
    for path, tag in _texts(document.tree, ("router", "rules", None, "use", "tag")):
        if tag not in tags:
            document.report(path, f"no model has the tag '{tag}'", "Add it to the tags of a model.")


def _model_names(tree: object) -> Iterator[tuple[Path, str]]:
    yield from _texts(tree, ("models", None, "name"))
    yield from _texts(tree, ("models", None, "aliases", None))


def _references(tree: object) -> Iterator[tuple[Path, str]]:
    yield from _texts(tree, ("router", "fallback_models", None))
    for short in ((), (None,), ("models",), ("models", None)):
        yield from _texts(tree, ("router", "rules", None, "use", *short))


def _mentions(tree: object) -> Iterator[tuple[Path, str]]:
    """Models whose state is a condition of a rule, at any depth."""
    pending = list(_values(tree, ("router", "rules", None, "when")))
    while pending:
        path, condition = pending.pop()
        for key in ("warm", "busy"):
            yield from _texts(condition, (key,), path)
        for key in ("any", "all", "not"):
            pending += _values(condition, (key, None), path)
            pending += _values(condition, (key,), path)


def _values(tree: object, pattern: tuple[str | None, ...], path: Path = ()) -> Iterator[tuple[Path, object]]:
    """All values at places like `pattern`, where None stands for every position of a list."""
    if not pattern:
        yield path, tree
        return
    first, *rest = pattern
    if first is None and isinstance(tree, list):
        for index, item in enumerate(tree):
            yield from _values(item, tuple(rest), (*path, index))
    elif first is not None and isinstance(tree, dict) and first in tree:
        yield from _values(tree[first], tuple(rest), (*path, first))


def _texts(tree: object, pattern: tuple[str | None, ...], path: Path = ()) -> Iterator[tuple[Path, str]]:
    """The texts among them."""
    for place, value in _values(tree, pattern, path):
        if isinstance(value, str) and value:
            yield place, str(value)


# Settings without effect


def _rule_notes(document: Document, config: Config) -> Iterator[str]:
    for index, sentence in dead_rules(config.router.rules):
        path: Path = ("router", "rules", index)
        line = document.values.get(path, (0, 0))[0]
        yield f"{document.file}:{line}: {field_name(path)}: {sentence}."


def _notes(section: BaseModel, path: Path = ()) -> Iterator[str]:
    for name, field in type(section).model_fields.items():
        if name not in section.model_fields_set:
            continue
        value = getattr(section, name)
        inner = (*path, field.alias or name)
        if isinstance(value, BaseModel):
            yield from _notes(value, inner)
        elif isinstance(value, tuple):
            for index, item in enumerate(value):
                if isinstance(item, BaseModel):
                    yield from _notes(item, (*inner, index))
        yield from _note(field, value, inner)


def _note(field: FieldInfo, value: object, path: Path) -> Iterator[str]:
    extra = field.json_schema_extra
    effective = extra.get("effective", True) if isinstance(extra, dict) else True
    if effective is False and value is not None:
        yield f"{field_name(path)} has no effect in this version."
    elif isinstance(effective, list) and value is not None and value not in effective:
        yield f"{field_name(path)}: {value} has no effect in this version."
