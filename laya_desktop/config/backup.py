"""The last good content of a config file, for a start that finds the file broken or damaged.

A reboot in the middle of a write by another program, or a failing disk, leaves a file of NUL bytes, an empty
one, or one that ends too early. Such a file is set aside and the last good content takes its place. A file
that a person broke is never touched: the last good settings are in effect until it is corrected.
"""

import logging
import time
import zlib
from pathlib import Path

import yaml

from laya_desktop.config.files import read_file, replace_file
from laya_desktop.config.reader import MAX_BYTES, decode

log = logging.getLogger(__name__)


class Backup:
    """In `folder`, one file for each config file. Blocks on the disk."""

    def __init__(self, folder: Path, config: Path) -> None:
        self._config = config
        self._file = folder / f"config-{zlib.crc32(str(config.absolute()).encode()):08x}.yaml"
        self._kept: bytes | None = None

    def keep(self, data: bytes) -> None:
        """Remember `data`, unless it is what was kept last. A folder that cannot be written is logged."""
        if data == self._kept:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._file, data)
        except OSError as error:
            log.warning("the settings could not be backed up: %s", error)
            return
        self._kept = data

    def content(self) -> bytes | None:
        """What was kept last, by this process or an earlier one; None if there is nothing."""
        try:
            return read_file(self._file, MAX_BYTES)
        except OSError:
            return None

    def restore(self, data: bytes) -> Path:
        """Set the config file aside and put `data` in its place; where the old one is now. Raises OSError."""
        target = self._config.resolve()
        aside = target.with_name(f"{target.name}.corrupt-{time.strftime('%Y%m%d-%H%M%S')}")
        target.rename(aside)
        replace_file(target, data)
        return aside


def damage(data: bytes) -> str:
    """What happened to a file that nobody can have written so; "" if a person may have."""
    if not data:
        return "it is empty"
    if not data.strip(b"\0"):
        return "it holds nothing but NUL bytes"
    try:
        text = decode(data)
        if "\0" in text:
            return "it contains NUL bytes"
        yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        if "<stream end>" in str(error.problem) or "end of stream" in str(error.problem):
            return "its end is missing"
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError):
        pass
    return ""
