"""Which regular expressions the router runs: none that can stall it."""

import re
import time

import pytest

from laya_desktop.config.patterns import TEXT_CHARS, problem

FINE = [
    r"\bdef\s+\w+\(",
    r"^fix.*bug",
    r"\bclass\s+\w+\s*[:(]",
    r"https?://\S+\.(py|js)\b",
    r"\d{4}-\d{2}-\d{2}",
    r"(?i)hello|world",
    r"(\w+\s)*x",
    r"(?:a|b)*c",
    r"a*+b",
    r"(重构|翻译).*成",
    r"\s+$",
    r"[^a-z]*?x",
    r".*(?:a|b|c)9",
    r"[a-z].{0,50}.{0,50}9",
    r"(?!foo)bar(?<=x)?",
]


@pytest.mark.parametrize("pattern", FINE)
@pytest.mark.parametrize("text", ["a", "a ", " ", "ab", "9", "x重", "\n", "fix "])
def test_what_is_accepted_is_fast_on_any_text(pattern: str, text: str) -> None:
    assert problem(pattern) == ""
    text = (text * TEXT_CHARS)[:TEXT_CHARS]
    started = time.process_time()
    re.search(pattern, text, re.IGNORECASE)
    assert time.process_time() - started < 0.2


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a+)+b",
        r"(a|a)*b",
        r"a*a*a*b",
        r".*.*x",
        r"\w*\d*x",
        r"(\w*\s*)*y",
        r"(x+x+)+y",
        r"(.*a){20}",
        r"([a-z]+)*1",
        r"(a|aa)+$",
        r"(?=(a+)+b)c",
        r"(é+é+)+x",
        r"(a?){30}a{30}",
        r"((((a*)*)*)*)*b",
        r"(a{1,1000}){1,1000}b",
    ],
)
def test_what_could_stall_the_engine_is_refused(pattern: str) -> None:
    assert "too long" in problem(pattern)


@pytest.mark.parametrize("pattern", ["(", "[a", "*", r"\1"])
def test_what_is_no_expression_is_refused(pattern: str) -> None:
    assert problem(pattern).startswith("not a regular expression")
