"""What the engine says, in the window's language."""

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication

from laya_desktop.core.errors import ErrorCode, ErrorInfo
from laya_desktop.core.events import Notice
from laya_desktop.core.types import Candidate, Decision
from laya_desktop.ui import engine_text, i18n

LOST = ErrorInfo(code=ErrorCode.MODEL_FILE_MISSING, message="/m.gguf does not exist.", hint="Put it back.")


@pytest.fixture
def chinese(qapp: QApplication) -> Iterator[None]:
    i18n.apply(qapp, "zh_CN")
    yield
    i18n.apply(qapp, "en")


def decided(rule: str, reason: str = "", candidates: tuple[Candidate, ...] = ()) -> Decision:
    return Decision(
        model="small", rule=rule, reason=reason, task="chat", candidates=candidates, elapsed_us=1.0
    )


def test_an_english_window_says_what_the_engine_says(qapp: QApplication) -> None:
    assert engine_text.error(LOST) == "/m.gguf does not exist. Put it back."


def test_a_chinese_window_has_words_for_codes_and_keeps_the_detail(chinese: None) -> None:
    assert engine_text.error(LOST) == "找不到模型文件。 /m.gguf does not exist. Put it back."
    other = ErrorInfo(code=ErrorCode.INTERNAL, message="KeyError: 1")
    assert engine_text.error(other) == "KeyError: 1"


@pytest.mark.parametrize(
    ("decision", "said", "chip"),
    [
        (decided("named", "The request names this model."), "请求指定了这个模型。", "由你选择"),
        (decided("task:code", "Code goes …"), "代码交给最小的代码模型，没有则交给最大的模型。", ""),
        (decided("fallback", "big failed: it crashed."), "由此模型接替。big failed: it crashed.", "后备"),
        (decided("翻译", "Rule '翻译' matches."), "符合规则“翻译”。", "翻译"),
        # Rules of the user's with names of ours.
        (decided("fallback", "Rule 'fallback' matches."), "符合规则“fallback”。", "fallback"),
        (
            decided("named", "Rule 'named' matches.", (Candidate(model="small"),)),
            "符合规则“named”。",
            "named",
        ),
    ],
)
def test_decisions(chinese: None, decision: Decision, said: str, chip: str) -> None:
    assert engine_text.reason(decision) == said
    assert engine_text.rule(decision) == chip


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("loaded", "small 已加载，随时可用。"),
        ("unloading", "正在卸载 small。"),
        ("fallback", "由 small 接替。because"),
        ("failed", "because"),
    ],
)
def test_notices(chinese: None, kind: str, said: str) -> None:
    assert engine_text.notice(Notice(at=1.0, kind=kind, text="because", model="small")) == said
