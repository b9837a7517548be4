"""The intent model on sentences that it was not trained on, and on what no one should send."""

import math
from importlib import resources

import numpy as np
import pytest

from laya_desktop.engine.routing import intent, lexicon, marks
from laya_desktop.engine.routing.scan import scan

SENTENCES = {
    "chat": (
        "hey, how's it going?",
        "Thanks a lot, that helped!",
        "Who was the first woman to fly across the Atlantic?",
        "any idea what I could cook with leftover potatoes?",
        "你今天过得怎么样？",
        "给我讲个冷笑话吧",
        "长城有多长？",
    ),
    "code": (
        "My Flask route returns a 404 although the blueprint is registered, why?",
        "Write a Rust function that splits a string on commas but respects quotes.",
        "SELECT name FROM pets WHERE age > 3; -- why is this slow?",
        "```js\nconst total = rows.reduce((a, b) => a + b);\n```\nit prints NaN",
        "用 Go 写一个并发安全的计数器",
        "这个接口一直报空指针异常，帮我排查一下",
    ),
    "reasoning": (
        "A baker bakes 48 rolls, sells three quarters of them and gives 5 away. How many are left?",
        "what is 17 * 23",
        "Prove that the product of two odd numbers is odd.",
        "Find the derivative of x^3 sin(x).",
        "小强有35元，买了4个笔记本，每个6元，还剩多少元？",
        "求函数 y=x^2-4x+1 的最小值",
    ),
    "writing": (
        "Write a birthday poem for my aunt who loves gardening.",
        "Draft an email to our supplier asking for a later delivery date.",
        "Proofread this paragraph and make it sound more confident.",
        "帮我写一封给房东的邮件，说下个月要搬走",
        "写一篇关于秋天的散文，800字左右",
    ),
    "translation": (
        "How do you say 'good luck' in Icelandic?",
        "Translate the following sentence into German: The shop is closed on Sundays.",
        "把下面这句话翻译成法语：我们明天出发。",
        "“辛苦了”用英语怎么说？",
    ),
}

ODD = (
    "",
    " \n\t ",
    "😀🎉",
    "\ud83d lone \udfff",
    "\x00\x01\x02",
    "привет, как дела?",
    "これは何ですか",
    "안녕하세요",
    "مرحبا كيف حالك",
    "สวัสดี",
    "¿Dónde está la biblioteca?",
    "?" * 3000,
    "x" * 200_000,
    "今天天气很好。" * 30_000,
    "word " * 40_000,
    "\n".join("{}();" for _ in range(40_000)),
)


def _classify(text: str) -> intent.Intent:
    return intent.model().classify(scan(text))


@pytest.mark.parametrize(("task", "text"), [(task, text) for task in SENTENCES for text in SENTENCES[task]])
def test_what_is_asked_for_is_recognised(task: str, text: str) -> None:
    assert _classify(text).task == task


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_odd_prompts_get_a_proper_distribution(text: str) -> None:
    found = _classify(text)
    assert found.task in intent.TASKS
    assert len(found.probabilities) == len(intent.TASKS)
    assert math.isclose(sum(found.probabilities), 1, abs_tol=1e-6)
    assert found.confidence == max(found.probabilities)


@pytest.mark.parametrize("text", ["hello there", "写一首诗", "def f(x):\n    return x"])
def test_the_same_prompt_gives_the_same_answer(text: str) -> None:
    assert _classify(text) == _classify(text)


def test_doubt_is_visible() -> None:
    assert _classify("hello, how are you today?").confidence > 0.9
    assert _classify("zxqv blorp").confidence < 0.9


def test_the_weights_are_small() -> None:
    file = resources.files("laya_desktop.engine.routing").joinpath("intent.npz")
    assert len(file.read_bytes()) < 1_000_000


def test_a_packed_model_is_read_back() -> None:
    rows = {b"poem": intent.FACTS, (b"a", b"poem"): intent.FACTS + 2, "诗歌": intent.FACTS + 1}
    weights = np.zeros((intent.FACTS + 3, len(intent.TASKS)), np.float32)
    weights[intent.FACTS :, intent.TASKS.index("writing")] = 4
    model = intent.unpack(intent.pack(rows, weights))
    assert model.classify(scan("a poem")) == intent.Model(rows, weights).classify(scan("a poem"))
    assert model.classify(scan("诗歌")).task == "writing"


def test_tokens_of_the_lexicon_can_be_found() -> None:
    for group, words in lexicon.words().items():
        assert words, group
        for word in words:
            text = word.decode() if isinstance(word, bytes) else word
            found = scan(text)
            assert word in [*intent.tokens(found), *intent.opening(found)], word


def test_marks_are_found_anywhere() -> None:
    assert marks.find(b"") == 0
    assert marks.find(b"plain words only") == 0
    assert marks.find(b"f();") & marks.CODE
    assert marks.find(b"see http://example.org") & marks.URL
    assert marks.find("∫ x dx ≤ π".encode()) & marks.MATHS
    assert marks.find(b"12+7") & marks.SUMS
    assert marks.find(b"a) 1 b) 2") & marks.CHOICES
