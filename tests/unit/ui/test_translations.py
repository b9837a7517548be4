"""Every string is translated, and the compiled files are those of the sources."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "resources" / "translations"


@pytest.mark.parametrize("name", ["laya_en", "laya_zh_CN"])
def test_nothing_is_unfinished(name: str) -> None:
    root = ET.parse(FOLDER / f"{name}.ts")
    unfinished = [
        message.findtext("source")
        for message in root.iter("message")
        if message.find("translation") is None or message.find("translation").get("type")  # type: ignore[union-attr]
    ]
    assert unfinished == []
    assert (FOLDER / f"{name}.qm").stat().st_size > 100


def placeholders(text: str) -> list[str]:
    return sorted(re.findall(r"\{\w+\}|%n", text))


def test_placeholders_survive_translation() -> None:
    for message in ET.parse(FOLDER / "laya_zh_CN.ts").iter("message"):
        source = message.findtext("source") or ""
        translation = message.find("translation")
        assert translation is not None
        texts = [form.text or "" for form in translation] or [translation.text or ""]
        for text in texts:
            assert sorted(re.findall(r"\{\w+\}|%n", text)) == sorted(re.findall(r"\{\w+\}|%n", source)), (
                source
            )
