"""What a hostile template can and cannot do."""

import itertools
import time

import jinja2
import pytest

from laya_desktop.backends.common import template_sandbox
from laya_desktop.backends.common.template_sandbox import TemplateSandbox, render, time_limit


def rendered(source: str, **variables: object) -> str:
    return render(TemplateSandbox().from_string(source), variables, time_limit())


@pytest.mark.parametrize(
    "source",
    [
        "{{ cycler.__init__.__globals__.os.getpid() }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ raise_exception.__globals__.os }}",
        "{{ messages.append(1) }}",
    ],
)
def test_there_is_no_way_out(source: str) -> None:
    with pytest.raises(jinja2.TemplateError):
        rendered(source, messages=[])


GROW = "{%% set n = namespace(x='a' * 1000) %%}{%% for i in range(60) %%}%s{%% endfor %%}{{ n.x }}"


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'a' * 100000000 }}",
        "{{ [0] * 100000000 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ 'a' | center(1000000000) }}",
        "{{ 'a'.center(1000000000) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%1000000000d' | format(1) }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ 'a'.replace('', 'b' * 1000000).replace('b', 'b' * 1000000) }}",
        "{{ ('a' * 1000000) | replace('a', 'b' * 1000000) }}",
        "{{ [('a' * 1000000)] * 100000 }}",
        "{{ ([('a' * 1000000)] * 5) | list | join('b' * 9000000) }}",
        "{{ range(1000000000) | list }}",
        "{% for i in range(100) %}{{ 'a' * 1000000 }}{% endfor %}",
        GROW % "{% set n.x = n.x + n.x %}",
        GROW % "{% set n.x = n.x ~ n.x %}",
        GROW % "{% set n.x = [n.x, n.x] %}",
        GROW % "{% set n.x %}{{ n.x }}{{ n.x }}{% endset %}",
        GROW % "{% set n.x = n.x | replace('a', 'aa') %}",
        "{% macro m(k) %}{{ m(k + 1) }}{% endmacro %}{{ m(0) }}",
    ],
)
def test_bombs_do_not_go_off(source: str) -> None:
    started = time.monotonic()
    with pytest.raises((jinja2.TemplateError, OverflowError, RecursionError)):
        rendered(source)
    assert time.monotonic() - started < 2 * template_sandbox.MAX_SECONDS + 2


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}",
    ],
)
def test_endless_loops_end(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_sandbox, "MAX_SECONDS", 0.2)
    with pytest.raises(jinja2.TemplateError):
        rendered(source)


def test_what_chat_templates_use_is_there() -> None:
    assert rendered("{{ strftime_now('%Y') }}").isdigit()
    assert rendered("{{ x | tojson }}", x={"ü": "<b>"}) == '{"ü": "<b>"}'
    assert rendered("{{ x | tojson(indent=2) }}", x=[1]) == "[\n  1\n]"
    assert rendered("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}") == "01"
    assert rendered("{% generation %}a{{ 1 }}{% endgeneration %}b") == "a1b"
    assert rendered("{{ 'a' ~ 1 ~ none }}") == "a1None"
    assert rendered("  {% if true %}\n  x\n  {% endif %}\n") == "  x\n"
    assert rendered("{{ '%s-%02d' % ('a', 3) }} {{ 'a b'.split(' ')[1] }}") == "a-03 b"
    with pytest.raises(jinja2.TemplateError, match="no such chat"):
        rendered("{{ raise_exception('no such chat') }}")


def test_long_chats_are_no_bombs() -> None:
    text = "word " * 200_000
    source = "{% for m in messages %}{{ m.content | trim | replace('word', 'words') }}\n{% endfor %}"
    assert len(rendered(source, messages=[{"content": text}])) == len(text) + 200_000


def test_time_that_others_take_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    hours = itertools.count(0, 3600)
    with monkeypatch.context() as patch:
        patch.setattr(template_sandbox.time, "monotonic", lambda: next(hours))
        text = rendered("{% for i in range(100) %}{{ i }}{% endfor %}")
    assert text.endswith("99")
