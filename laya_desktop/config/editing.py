"""Changes to the text of a config file that leave everything else as the user wrote it."""

import copy
import io
import re
from enum import Enum
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.constructor import RoundTripConstructor
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import RoundTripRepresenter

from laya_desktop.config.problems import Path, field_name
from laya_desktop.core.errors import ErrorCode, LayaError

_NULL, _BOOL = "tag:yaml.org,2002:null", "tag:yaml.org,2002:bool"
_STEP = re.compile(r"(?:^|\.)([A-Za-z_]\w*)|\[(\d+)\]")
_INDENTED_LIST = re.compile(
    r"^( *)[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*( *)- ", re.MULTILINE
)
_INDENTED_KEY = re.compile(
    r"^\S[^\n]*:[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*( +)[^\s#-]", re.MULTILINE
)


def parse_key(key: str) -> Path:
    """``models[0].name`` as ``("models", 0, "name")``. Raises LayaError (invalid_request)."""
    steps = list(_STEP.finditer(key))
    if not key or "".join(step.group() for step in steps) != key:
        raise LayaError(ErrorCode.INVALID_REQUEST, f"'{key}' is not the name of a setting.", param=key)
    return tuple(step[1] or int(step[2]) for step in steps)


def replaced(tree: object, path: Path, value: object) -> object:
    """A copy of `tree` with `value` at `path`; sections that are missing are added.

    Raises LayaError (invalid_request) if `path` leads nowhere."""
    result = copy.deepcopy(tree) if isinstance(tree, dict) else {}
    _put(result, path, _plain(value), dict)
    return result


def edited(text: str, path: Path, value: object) -> str:
    """The text of the file with `value` at `path`. Raises LayaError (invalid_request)."""
    newline = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    yaml = _editor(text)
    try:
        root = yaml.load(text)
    except (YAMLError, ValueError) as error:
        raise LayaError(
            ErrorCode.INVALID_REQUEST,
            "The file is written in a way that cannot be edited here.",
            hint="Change it in a text editor.",
        ) from error
    prefix = ""
    if root is None:  # nothing but comments, which belong to no node
        root, prefix = CommentedMap(), text if not text or text.endswith("\n") else text + "\n"
    _put(root, path, _plain(value), CommentedMap)
    out = io.StringIO()
    yaml.dump(root, out)
    return (prefix + out.getvalue()).replace("\n", newline)


def _put(root: Any, path: Path, value: object, section: type[dict[Any, Any]]) -> None:
    node = root
    for depth, part in enumerate(path[:-1]):
        child = _child(node, part)
        if not isinstance(child, dict | list):
            if isinstance(path[depth + 1], int) or isinstance(node, list):
                raise _nowhere(path)
            child = node[part] = section()
        node = child
    if isinstance(node, list) and not (isinstance(path[-1], int) and path[-1] < len(node)):
        raise _nowhere(path)
    if isinstance(node, dict) and isinstance(path[-1], int):
        raise _nowhere(path)
    if isinstance(node, CommentedMap) and isinstance(_child(node, path[-1]), dict | list):
        node.ca.items.pop(
            path[-1], None
        )  # comments before its first item: they would end up inside the new value
    node[path[-1]] = value


def _child(node: Any, part: str | int) -> object:
    if isinstance(node, dict):
        return node.get(part)
    return node[part] if isinstance(part, int) and part < len(node) else None


def _nowhere(path: Path) -> LayaError:
    name = field_name(path)
    return LayaError(ErrorCode.INVALID_REQUEST, f"There is no setting {name}.", param=name)


def _plain(value: object) -> object:
    """Without types that YAML has no notation for."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _editor(text: str) -> YAML:
    """An editor that writes in the manner of `text`."""
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 1_000_000
    yaml.Constructor, yaml.Representer = _Constructor, _Representer
    nested, lists = _INDENTED_KEY.search(text), _INDENTED_LIST.search(text)
    offset = len(lists[2]) - len(lists[1]) if lists else 2
    yaml.indent(mapping=len(nested[1]) if nested else 2, sequence=offset + 2, offset=offset)
    return yaml


class _Verbatim(str):
    """A null or truth value as the user wrote it: ``~``, ``null`` or nothing; ``True`` or ``true``."""

    __slots__ = ("tag",)

    tag: str


class _Constructor(RoundTripConstructor):
    def _verbatim(self, node: ScalarNode) -> _Verbatim:
        scalar = _Verbatim(node.value)
        scalar.tag = str(node.tag)
        return scalar


class _Representer(RoundTripRepresenter):
    def _verbatim(self, scalar: _Verbatim) -> ScalarNode:
        return self.represent_scalar(scalar.tag, str(scalar))

    def _null(self, _: None) -> ScalarNode:
        return self.represent_scalar(_NULL, "null")


for _tag in (_NULL, _BOOL):
    _Constructor.add_constructor(_tag, _Constructor._verbatim)
_Representer.add_representer(_Verbatim, _Representer._verbatim)
_Representer.add_representer(type(None), _Representer._null)
