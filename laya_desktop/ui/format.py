"""Numbers as people read them. Pure functions; only those that need words take translations."""

from PySide6.QtCore import QCoreApplication, QLocale

_GIB = 1024**3
_MIB = 1024**2


def size(count: int) -> str:
    """Bytes as `0.8 GB` or `92 MB` (1 GB is 1024³ bytes, as system monitors show memory)."""
    if count >= 0.1 * _GIB:
        return f"{gigabytes(count)} GB"
    return f"{count / _MIB:.0f} MB"


def gigabytes(count: int) -> str:
    """Bytes as a bare number of GB: one decimal below 100."""
    value = count / _GIB
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}"


def count(number: int) -> str:
    """`950`, `1.2k`, `32k`, `1.1M`."""
    if number < 1000:
        return str(number)
    for divisor, unit in ((1_000, "k"), (1_000_000, "M")):
        value = number / divisor
        if value < 9.95:
            return f"{value:.1f}".removesuffix(".0") + unit
        if value < 999.5 or unit == "M":
            return f"{value:.0f}{unit}"
    return str(number)


def context(tokens: int) -> str:
    """A context length, which people know in powers of two: `8k`, `32k`, `128k`; else like `count`."""
    if tokens >= 1024 and tokens % 1024 == 0:
        return f"{tokens // 1024}k"
    return count(tokens)


def parameters(number: int) -> str:
    """`135M`, `0.5B`, `7B`, `70B`."""
    if number < 400_000_000:
        return f"{number / 1_000_000:.0f}M"
    value = number / 1_000_000_000
    return f"{value:.1f}".removesuffix(".0") + "B" if value < 10 else f"{value:.0f}B"


def seconds(value: float) -> str:
    """`0.41 s`, `4.2 s`, `75 s`."""
    digits = 2 if value < 1 else 1 if value < 60 else 0
    return QCoreApplication.translate("format", "{0} s").format(f"{value:.{digits}f}")


def microseconds(value: float) -> str:
    """`14 µs`, or `1.3 ms` from 1,000."""
    return f"{value:.0f} µs" if value < 1000 else f"{value / 1000:.1f} ms"


def percent(share: float) -> str:
    """0…1 as `62 %`."""
    return f"{round(100 * min(1.0, max(0.0, share)))} %"


def clock(at: float) -> str:
    """Seconds since the epoch as the local time of day."""
    from datetime import datetime

    return datetime.fromtimestamp(at).strftime("%H:%M:%S")


def number(value: int) -> str:
    """An integer with the locale's thousands separators."""
    return QLocale().toString(value)
