import pytest

from laya_desktop.ui import format

GIB = 1024**3


@pytest.mark.parametrize(
    ("count", "text"),
    [(98_362_432, "94 MB"), (int(0.8 * GIB), "0.8 GB"), (32 * GIB, "32.0 GB"), (120 * GIB, "120 GB")],
)
def test_size(count: int, text: str) -> None:
    assert format.size(count) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (950, "950"), (1224, "1.2k"), (12_345, "12k"), (999_600, "1M"), (1_250_000, "1.2M")],
)
def test_count(number: int, text: str) -> None:
    assert format.count(number) == text


@pytest.mark.parametrize(("tokens", "text"), [(4096, "4k"), (131_072, "128k"), (8000, "8k"), (2000, "2k")])
def test_context(tokens: int, text: str) -> None:
    assert format.context(tokens) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(134_515_008, "135M"), (494_000_000, "0.5B"), (7_600_000_000, "7.6B"), (70_000_000_000, "70B")],
)
def test_parameters(number: int, text: str) -> None:
    assert format.parameters(number) == text


@pytest.mark.parametrize(("value", "text"), [(0.41, "0.41 s"), (4.2, "4.2 s"), (75.0, "75 s")])
def test_seconds(value: float, text: str) -> None:
    assert format.seconds(value) == text


def test_microseconds() -> None:
    assert (format.microseconds(14.2), format.microseconds(1300)) == ("14 µs", "1.3 ms")
