"""What memory is used now: the machine, the limit this process tree runs under, every worker."""

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

from laya_desktop.core.events import MemorySample

GB = 1 << 30

_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def default_reserve(total: int) -> int:
    """Bytes kept for the system when the config names none: 10 % of memory, between 1 and 4 GB."""
    return int(min(max(0.1 * total, GB), 4 * GB))


def cgroup_limit() -> int | None:
    """Bytes that the cgroup at the root of our view allows; None without a limit."""
    for file in _CGROUP_LIMITS:
        with contextlib.suppress(OSError, ValueError):
            return int(file.read_text())
    return None


def sample(workers: Mapping[str, int], reserved: int | None) -> MemorySample:
    """One sample. `workers` maps model names to process ids, `reserved` is bytes or None for the default.
    Takes a few milliseconds: call it in a pool thread."""
    machine = psutil.virtual_memory()
    limit = min(machine.total, cgroup_limit() or machine.total)
    return MemorySample(
        at=time.time(),
        limit=limit,
        used=machine.total - machine.available,
        available=max(0, machine.available - (machine.total - limit)),
        reserved=default_reserve(limit) if reserved is None else reserved,
        models={name: size for name, pid in workers.items() if (size := process_memory(pid)) is not None},
    )


def is_low(sample: MemorySample, threshold_gb: float | None) -> bool:
    """Whether less is free than the threshold, which is the smaller of 12 GB and 15 % unless it is given."""
    threshold = min(12 * GB, 0.15 * sample.limit) if threshold_gb is None else threshold_gb * GB
    return sample.available < threshold


def process_memory(pid: int) -> int | None:
    """Bytes a process holds: its proportional share where the system tells, else its resident or unique
    set. None if it is gone."""
    try:
        info = psutil.Process(pid).memory_full_info()
    except psutil.Error:
        return None
    return int(getattr(info, "pss", 0) or getattr(info, "uss", 0) or info.rss)
