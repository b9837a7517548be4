"""What the reader accepts, what it refuses and where it says the fault is."""

import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from laya_desktop.config.reader import MAX_NODES, decode, encode, read


def problems(content: str | bytes) -> list[str]:
    data = content if isinstance(content, bytes) else content.encode()
    return [str(problem) for problem in read(data, "config.yaml").problems]


@pytest.mark.parametrize("content", ["", "   \n", "# only a comment\n", "---\n"])
def test_a_file_without_content_is_an_empty_tree(content: str) -> None:
    document = read(content.encode(), "config.yaml")
    assert not document.problems
    assert document.tree in ({}, "")


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_encodings_and_line_ends(codec: str, newline: str) -> None:
    text = "server:\n  host: 名\n".replace("\n", newline)
    document = read(text.encode(codec), "config.yaml")
    assert document.tree == {"server": {"host": "名"}}
    assert document.values["server", "host"] == (2, 9)


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16"])
def test_encoding_survives(codec: str) -> None:
    data = "ui: {} # ä\n".encode(codec)
    assert encode(decode(data), like=data) == data


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a:\n\t- b\n", "config.yaml:2: a tab where YAML allows only spaces. Replace the tab by spaces."),
        (b"a: b\nc: caf\xe8\n", "config.yaml:2: byte 0xE8 is not UTF-8. Save the file as UTF-8."),
        ("a: 1\n---\nb: 1\n", "config.yaml:2: a second document begins here."),
        (b"a: b\n" + b"\0" * 64560, "config.yaml:2: the file contains NUL bytes."),
        ("a: b\nc: \x07\n", "config.yaml:2: character U+0007 is not allowed."),
        (
            "a: !!python/object/apply:os.system ['true']\n",
            "config.yaml:1: a: the tag !!python/object/apply:os.system",
        ),
        ("a: !custom x\n", "config.yaml:1: a: the tag !custom is not allowed here."),
        ("a: 1\nb: 2\na: 3\n", "config.yaml:3: a: this key is already set in line 1."),
        ('a: "C:\\models"\n', "use single quotes for paths."),
        ("a: b: c\n", "config.yaml:1: a ':' where none is expected. Quote text that contains ': ',"),
        ("a:\n  b c\n  d: 1\n", "see whether the line above lacks its ':'."),
        ("a:\n  - b: 1\n   c: 2\n", "config.yaml:3: this line does not line up with those before it."),
        ("a:\n  b: 1\n c: 2\n", "config.yaml:3: this line does not line up with those before it."),
        ("a: 'b\nc: 1\n", "a quote is not closed."),
        ("a: {b: 1, c\nd: 2\n", "config.yaml:2: a bracket is not closed, or a comma is missing."),
        ("a: @b\n", "Put the value in quotes."),
        ("a: *nowhere\n", "config.yaml:1: found undefined alias 'nowhere'."),
        ("a: [1, 2\n", "config.yaml:2: "),
        ("? [a, b]\n: c\n", "config.yaml:1: a key must be a single word."),
        ("a:\n  <<: 3\n", "config.yaml:2: a: << takes over mappings only."),
    ],
)
def test_refused_with_a_line(content: str | bytes, expected: str) -> None:
    found = problems(content)
    assert any(expected in problem for problem in found), found


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('a: 1\nb: "x\\ud83d"\n', "config.yaml:2: b: \\ud83d is half a character."),
        ('a:\n  - "\\ud83d\\ude00"\n', "config.yaml:2: a[0]: \\ud83d is half a character."),
        ('a:\n  "x\\udfff": 1\n', "config.yaml:2: a: \\udfff is half a character."),
        ('a: !!int "\\udc00"\n', "config.yaml:1: a: \\udc00 is half a character."),
        ('b: &b {"\\udc00": 1}\na:\n  <<: *b\n', "config.yaml:1: b: \\udc00 is half a character."),
    ],
)
def test_half_characters_are_reported_and_go_no_further(content: str, expected: str) -> None:
    document = read(content.encode(), "config.yaml")
    assert str(document.problems[0]).startswith(expected)
    "".join([repr(document.tree), *map(str, document.problems)]).encode()
    str(document.tree).encode()
    assert "\ufffd" in str(document.tree)


def test_whole_characters_may_be_escaped() -> None:
    assert read(b'a: "\\U0001f600 \\u00e4"', "config.yaml").tree == {"a": "😀 ä"}


def test_all_faults_of_the_tree_are_reported_together() -> None:
    assert len(problems("a: !x 1\nb: 1\nb: 2\nc: !y z\n")) == 3


def test_anchors_and_merge_keys() -> None:
    text = "base: &b {x: one, y: two}\nmore: &m {<<: *b, z: three}\nlast:\n  <<: [*m, *b]\n  y: own\n"
    document = read(text.encode(), "config.yaml")
    assert not document.problems
    assert document.tree == {
        "base": {"x": "one", "y": "two"},
        "more": {"x": "one", "y": "two", "z": "three"},
        "last": {"x": "one", "y": "own", "z": "three"},
    }
    assert document.values["last", "y"] == (5, 6)
    assert document.values["last", "x"] == (1, 14)


def alias_bomb() -> str:
    lines = ["a: &a [" + ",".join("x" * 10) + "]"]
    lines += [
        f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]"
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "content",
    [alias_bomb(), "a: &a [*a]", "a: &a\n  <<: *a\n", "[" * 20_000, "a: " + "[" * 60 + "]" * 60],
    ids=["bomb", "cycle", "merge cycle", "open brackets", "nested"],
)
def test_reading_is_bounded(content: str) -> None:
    start = time.process_time()
    found = problems(content)
    assert len(found) == 1
    assert "nested too deeply" in found[0] or "too large" in found[0]
    assert time.process_time() - start < 5


def test_the_bound_leaves_room_for_real_files() -> None:
    models = "".join(f"  - name: m{i}\n    path: m{i}.gguf\n    tags: [a, b, c]\n" for i in range(500))
    assert problems("models:\n" + models) == []
    assert MAX_NODES > 10 * 500


@given(st.binary(max_size=300))
def test_no_bytes_raise(data: bytes) -> None:
    read(data, "config.yaml")


@given(
    st.recursive(
        st.text(max_size=8), lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner)
    )
)
def test_agrees_with_pyyaml_on_text(value: object) -> None:
    text = yaml.safe_dump(value, allow_unicode=True, default_style='"')
    document = read(text.encode(), "config.yaml")
    assert not document.problems
    assert document.tree == value
