"""What the router looks at in a request. Pure; of a long prompt only head and tail are scanned."""

import re
from dataclasses import dataclass

from laya_desktop.core.types import Caller, ChatRequest, Role

_SCANNED_CHARS = 512

# One alternation over a bounded text: every word-boundary regex of its own would cost as much again.
_CODE = re.compile(
    r"```|\bdef \w+\(|\bclass \w+[:({]|\bfunction\b|\breturn\b|=>|\{\n|;\n|#include|\bimport \w+"
    r"|Traceback|\bSELECT\b.+\bFROM\b|\b(?:python|javascript|typescript|golang|rust|java|sql|regex|bash)\b"
    r"|\b(?:code|refactor|compile|debug|unit test|stack trace|api)\b|代码|函数|编程|重构|调试|报错",
    re.IGNORECASE,
)
_REASONING = re.compile(
    r"\b(?:step by step|prove|proof|derive|explain why|analy[sz]e|compare|trade-?offs?|architecture|design"
    r"|plan|strategy|solve|calculate|evaluate|pros and cons)\b"
    r"|证明|推导|分析|比较|设计|架构|规划|方案|逐步|计算",
    re.IGNORECASE,
)
_LONG_PROMPT_CHARS = 1200


@dataclass(frozen=True)
class Features:
    """`text` is the last user turn's head and tail, lower-cased; `chars` its whole length."""

    text: str
    chars: int
    has_code: bool
    task: str
    caller: Caller


def extract(request: ChatRequest) -> Features:
    """Features of the last user turn; of nothing if there is none."""
    prompt = next((m.content for m in reversed(request.messages) if m.role is Role.USER), "")
    scanned = prompt
    if len(prompt) > 2 * _SCANNED_CHARS:
        scanned = f"{prompt[:_SCANNED_CHARS]}\n{prompt[-_SCANNED_CHARS:]}"
    has_code = _CODE.search(scanned) is not None
    return Features(
        text=scanned.casefold(),
        chars=len(prompt),
        has_code=has_code,
        task=request.task or _task(scanned, len(prompt), has_code),
        caller=request.caller,
    )


def _task(scanned: str, chars: int, has_code: bool) -> str:
    if has_code:
        return "code"
    if chars > _LONG_PROMPT_CHARS or _REASONING.search(scanned):
        return "reasoning"
    return "chat"
