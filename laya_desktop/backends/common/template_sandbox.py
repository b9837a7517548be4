"""A jinja2 environment for templates out of downloaded files: no way out, no bombs, no endless loops.

jinja2's immutable sandbox keeps a template away from Python's internals. It does not keep it from asking for
gigabytes or hours, so everything a template can do is bounded here as well: the size of each value it makes,
the work one call may be asked for, and the time of the whole rendering.
"""

import functools
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from types import FrameType
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_SIZE = 8_000_000
"""Characters (or items) of one value, and of the whole rendered prompt."""

MAX_WORK = 64_000_000
"""Bound for the product of the sizes of what goes into one call: what a call can blow its input up to."""

MAX_SECONDS = 2.0
"""For all that one prompt makes a template do."""

_WIDE_FORMAT = re.compile(r"\d{4,}|\*")

_OWN_CODE = (lambda: None).__code__.co_filename


class _OutOfTime(BaseException):
    """Not an Exception, so that nothing inside jinja2 handles it."""


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """Offers what transformers offers to chat templates: `raise_exception`, `strftime_now`, `tojson`, loop
    controls and `generation` blocks; blocks are trimmed as there."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        """Join what a template puts out, and stop it as soon as it is too much."""
        kept: list[str] = []
        size = 0
        for part in parts:
            size += len(part)
            if size > MAX_SIZE:
                raise SecurityError("the template puts out too much text")
            kept.append(part)
        return "".join(kept)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.loopcontrols", _GenerationBlock],
            # Folding constants would run a bomb while the template is compiled.
            optimized=False,
            finalize=_checked,
        )
        self.code_generator_class = _BoundedCode
        self.filters["tojson"] = _tojson
        self.filters = {name: _bounded(function) for name, function in self.filters.items()}
        del self.globals["lipsum"]
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = _strftime_now

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator in ("*", "**"):
            _check_work((left, right))
        if operator == "%" and isinstance(left, str):
            _check_format(left)
        return _checked(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        # The text that a method such as `replace` or `join` works on counts as input, too. jinja2 has wrapped
        # `format` already.
        subject = getattr(getattr(__obj, "__wrapped__", __obj), "__self__", None)
        if isinstance(subject, str) and getattr(__obj, "__name__", "").startswith("format"):
            _check_format(subject)
        _check_work((subject, *args, *kwargs.values()))
        return _checked(super().call(__context, __obj, *args, **kwargs))


def time_limit() -> float:
    """Until when a prompt begun now may take, on this thread's processor clock: a template is not slow
    because others keep the processor busy."""
    return time.thread_time() + MAX_SECONDS


def render(template: jinja2.Template, variables: Mapping[str, object], deadline: float) -> str:
    """Render within the bounds and before `deadline` (see `time_limit`). Raises whatever the template raises,
    `SecurityError` beyond a bound."""
    try:
        with _until(deadline):
            return template.render(variables)
    except _OutOfTime:
        raise SecurityError(f"the template ran for more than {MAX_SECONDS:g} s") from None


@contextmanager
def _until(deadline: float) -> Iterator[None]:
    """Raise _OutOfTime in this thread after `deadline`. A trace function is the one means that works in every
    thread, on every system and between any two lines of a compiled template."""
    # A thread never computes for longer than has passed, and what has passed is cheaper to ask for.
    earliest = time.monotonic() + deadline - time.thread_time()

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        if time.monotonic() > earliest and time.thread_time() > deadline:
            raise _OutOfTime
        # The checks of this module are short and many: tracing each of their lines takes most of the time.
        return None if frame.f_code.co_filename == _OWN_CODE else trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def _size(value: object) -> int:
    """Characters or items of a value; the magnitude of a number, which may be a width or a count."""
    if isinstance(value, (str, bytes, list, tuple, dict)):
        return len(value)
    return abs(value) if isinstance(value, int) else 1


def _weight(value: object) -> int:
    """The size of a value with all that is inside it: what it would come to as text, roughly."""
    if isinstance(value, int):
        return value.bit_length()
    if isinstance(value, (list, tuple)):
        return len(value) + sum(map(_weight, value))
    if isinstance(value, dict):
        return len(value) + sum(map(_weight, value.keys())) + sum(map(_weight, value.values()))
    return _size(value)


def _checked(value: Any) -> Any:
    if _weight(value) > MAX_SIZE:
        raise SecurityError("the template makes too large a value")
    return value


def _check_work(values: Iterable[object]) -> None:
    work = 1
    for value in values:
        work *= max(1, _size(_checked(value)))
        if work > MAX_WORK:
            raise SecurityError("the template asks for too much work at once")


def _check_format(text: str) -> None:
    if _WIDE_FORMAT.search(text):
        raise SecurityError("the template uses too wide a format")


def _bounded(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def bounded(*args: Any, **kwargs: Any) -> Any:
        _check_work((*args, *kwargs.values()))
        if function.__name__ == "do_format":
            _check_format(str(args[0]))
        return _checked(function(*args, **kwargs))

    return bounded


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)


def _tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Plain JSON: jinja2's own filter escapes it for HTML."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


class _BoundedCode(CodeGenerator):
    """Sends `a ~ b` through the bounded concatenation."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        self.write("environment.concat(str(environment.finalize(part)) for part in (")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class _GenerationBlock(Extension):
    """`{% generation %}` marks the assistant's part for training; here it is only its content."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)
