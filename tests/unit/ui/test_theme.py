"""Contrast of both themes: 4.5:1 for text on every ground it is put on, 3:1 for outlines of controls."""

import re

import pytest

from laya_desktop.ui.theme import DARK, LIGHT, Tokens, contrast, token_names

THEMES = pytest.mark.parametrize("tokens", [LIGHT, DARK], ids=["light", "dark"])

TEXT_PAIRS = [
    *[
        ("text", ground)
        for ground in ("background", "panel", "rail", "selection", "accent_tint", "code_background")
    ],
    *[("text", ground) for ground in ("ok_tint", "warn_tint", "danger_tint")],
    *[("muted", ground) for ground in ("background", "panel", "rail", "accent_tint", "code_background")],
    *[("accent", ground) for ground in ("background", "panel", "accent_tint")],
    ("on_accent", "accent"),
    *[
        (tone, ground)
        for tone in ("ok", "warn", "danger")
        for ground in ("background", "panel", f"{tone}_tint")
    ],
    *[(name, "code_background") for name in token_names() if re.match(r"code_(?!background)", name)],
]
OUTLINE_PAIRS = [
    (line, ground) for line in ("control_border", "focus") for ground in ("background", "panel", "rail")
]


@THEMES
@pytest.mark.parametrize(("front", "ground"), TEXT_PAIRS)
def test_text_is_readable(tokens: Tokens, front: str, ground: str) -> None:
    assert contrast(getattr(tokens, front), getattr(tokens, ground)) >= 4.5


@THEMES
@pytest.mark.parametrize(("front", "ground"), OUTLINE_PAIRS)
def test_outlines_are_visible(tokens: Tokens, front: str, ground: str) -> None:
    assert contrast(getattr(tokens, front), getattr(tokens, ground)) >= 3.0


def test_contrast_of_the_extremes() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#777777") == pytest.approx(1)
