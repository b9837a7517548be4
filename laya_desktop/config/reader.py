"""The one reader of ``config.yaml``: bytes to plain values that remember their place and their text.

Built on PyYAML's parser. It never constructs objects, never walks more than `MAX_NODES` nodes (aliases count
each time they are used) and reports everything it dislikes with a line.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from laya_desktop.config.problems import Path, Problem, field_name
from laya_desktop.config.scalar import Scalar

MAX_BYTES = 262_144
MAX_NODES = 50_000
MAX_DEPTH = 40

_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
_PLAIN_TAGS = {_TAG + name for name in ("null", "bool", "int", "float")}
_TEXT_TAGS = {_TAG + name for name in ("str", "timestamp", "value", "binary")}
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONSTRUCTOR = yaml.constructor.SafeConstructor()
_ENCODINGS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

Place = tuple[int, int]


@dataclass
class Document:
    """A file as read. `tree` holds dicts with text keys, lists, text and `Scalar`s; it is {} if there is
    nothing in the file. `values` and `keys` give line and column of each value and of each key, by path."""

    file: str
    tree: object = field(default_factory=dict)
    values: dict[Path, Place] = field(default_factory=dict)
    keys: dict[Path, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def report(self, path: Path, message: str, hint: str = "", place: Place | None = None) -> None:
        """Add a problem with the value at `path`, or with what comes nearest to it."""
        nearest = path
        while place is None:
            place = self.values.get(nearest) or ((0, 0) if not nearest else None)
            nearest = nearest[:-1]
        self.problems.append(Problem(self.file, message, *place, field_name(path), hint))


class _BeyondBoundsError(Exception):
    """The document is beyond the bounds: reading ends here."""


def read(data: bytes, file: str) -> Document:
    """Read a file's content. Never raises; see `Document.problems`."""
    document = Document(file)
    try:
        text = decode(data)
        node = yaml.compose(text, yaml.SafeLoader)
        if node is not None:
            document.tree = _Walk(document).value(node, ())
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        document.problems.append(
            Problem(
                file,
                f"byte 0x{error.object[error.start]:02X} is not UTF-8",
                line,
                hint="Save the file as UTF-8.",
            )
        )
    except yaml.reader.ReaderError as error:
        document.problems.append(_unprintable(error, text, file))
    except yaml.MarkedYAMLError as error:
        document.problems.append(_syntax(error, file))
    except RecursionError:
        document.problems.append(Problem(file, "the values are nested too deeply"))
    except _BeyondBoundsError:
        pass
    return document


def decode(data: bytes) -> str:
    """Text of a file in UTF-8 or UTF-16, without its byte-order mark. Raises UnicodeDecodeError."""
    mark, encoding = _encoding(data)
    return data[len(mark) :].decode(encoding)


def encode(text: str, like: bytes) -> bytes:
    """The opposite of `decode`, in the encoding of the file content `like`."""
    mark, encoding = _encoding(like)
    return mark + text.encode(encoding)


def _encoding(data: bytes) -> tuple[bytes, str]:
    return next((pair for pair in _ENCODINGS if data.startswith(pair[0])), (b"", "utf-8"))


class _Walk:
    """One pass over the nodes of a document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._budget = MAX_NODES

    def value(self, node: yaml.Node, path: Path) -> object:
        self._spend(node, path)
        self._document.values[path] = _place(node)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if node.tag not in (_TAG + "map", _TAG + "seq"):
            self._refuse_tag(node, path)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]

    def _spend(self, node: yaml.Node, path: Path) -> None:
        self._budget -= 1
        if self._budget < 0 or len(path) > MAX_DEPTH:
            what = "nested too deeply" if len(path) > MAX_DEPTH else "too large once its aliases are followed"
            self._document.report((), f"the document is {what}", place=_place(node))
            raise _BeyondBoundsError

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> object:
        text = self._text(node, path)
        if node.tag in _PLAIN_TAGS:
            return _plain(node) if text == node.value else text
        if node.tag not in _TEXT_TAGS:
            self._refuse_tag(node, path)
        return text

    def _text(self, node: yaml.ScalarNode, path: Path) -> str:
        """An escape such as ``\\ud83d`` makes half a character, which no text that leaves us may hold."""
        text: str = node.value
        if half := _SURROGATE.search(text):
            self._document.report(
                path,
                f"\\u{ord(half[0]):04x} is half a character",
                "Write the character itself, or \\U and its eight digits.",
                _place(node),
            )
        return _SURROGATE.sub("\ufffd", text)

    def _refuse_tag(self, node: yaml.Node, path: Path) -> None:
        tag = node.tag.replace(_TAG, "!!")
        self._document.report(path, f"the tag {tag} is not allowed here", "Remove it.", _place(node))

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, object]:
        result: dict[str, object] = {}
        seen: dict[str, Place] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                continue
            place = _place(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                self._document.report(path, "a key must be a single word", place=place)
                continue
            key = self._text(key_node, path)
            if key in seen:
                message = f"this key is already set in line {seen[key][0]}"
                self._document.report((*path, key), message, "Keep one of the two.", place)
            else:
                seen[key] = self._document.keys[(*path, key)] = place
                result[key] = self.value(value_node, (*path, key))
        for key_node, value_node in self._merged(node, path):
            if not isinstance(key_node, yaml.ScalarNode):
                continue
            key = self._text(key_node, path)
            if key not in result:
                self._document.keys[(*path, key)] = _place(key_node)
                result[key] = self.value(value_node, (*path, key))
        return result

    def _merged(self, node: yaml.MappingNode, path: Path) -> Iterator[tuple[yaml.Node, yaml.Node]]:
        """Entries taken over from other mappings (``<<: *name``), nearest first."""
        for key_node, value_node in node.value:
            if key_node.tag != _MERGE:
                continue
            sources = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
            for source in sources:
                self._spend(source, path)
                if not isinstance(source, yaml.MappingNode):
                    self._document.report(path, "<< takes over mappings only", place=_place(source))
                    continue
                yield from (pair for pair in source.value if pair[0].tag != _MERGE)
                yield from self._merged(source, path)


def _place(node: yaml.Node) -> Place:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _plain(node: yaml.ScalarNode) -> object:
    """A scalar that YAML 1.1 does not read as text. What does not fit its tag stays text."""
    try:
        if node.tag == _TAG + "null":
            return Scalar(node.value, None)
        if node.tag == _TAG + "bool":
            return Scalar(node.value, _CONSTRUCTOR.bool_values[node.value.lower()])
        if node.tag == _TAG + "int":
            return Scalar(node.value, _CONSTRUCTOR.construct_yaml_int(node))
        return Scalar(node.value, _CONSTRUCTOR.construct_yaml_float(node))
    except (ValueError, KeyError, OverflowError, IndexError):
        return node.value


def _unprintable(error: yaml.reader.ReaderError, text: str, file: str) -> Problem:
    line = text.count("\n", 0, error.position) + 1
    if error.character == 0:
        return Problem(
            file,
            "the file contains NUL bytes",
            line,
            hint="It was damaged, or saved as UTF-16 without a byte-order mark. Restore it or save as UTF-8.",
        )
    return Problem(file, f"character U+{error.character:04X} is not allowed", line, hint="Remove it.")


_EXPLANATIONS = (
    (r"found character '\\t'", "a tab where YAML allows only spaces", "Replace the tab by spaces."),
    (
        r"expected a single document",
        "a second document begins here",
        "Keep one document and remove this '---'.",
    ),
    (
        r"found unknown escape character",
        "",
        "In double quotes a backslash is special: use single quotes for paths.",
    ),
    (
        r"mapping values are not allowed here",
        "a ':' where none is expected",
        "Quote text that contains ': ', and see whether the line above lacks its ':'.",
    ),
    (r"found undefined alias", "", "Define it with & before it is used."),
    (
        r"expected <block end>, but found",
        "this line does not line up with those before it",
        "Indent it like its neighbours.",
    ),
    (r"cannot start any token", "", "Put the value in quotes."),
    (r"could not find expected ':'", "a key without ':'", "Write 'key: value'."),
    (r"while parsing a flow", "a bracket is not closed, or a comma is missing", "Check the [ ] and { }."),
    (r"while scanning a quoted scalar", "a quote is not closed", "Close it, or double a quote inside it."),
)


def _syntax(error: yaml.MarkedYAMLError, file: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    message, hint = error.problem or "not YAML", ""
    for pattern, better, advice in _EXPLANATIONS:
        if re.search(pattern, f"{error.context} {error.problem}"):
            message, hint = better or message, advice
            break
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    return Problem(file, message, line, column, hint=hint)
