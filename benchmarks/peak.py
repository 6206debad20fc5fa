"""The most memory that this process has held."""

from __future__ import annotations

import resource
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_mib() -> float:
    """Return it in MiB.

    What getrusage tells begins, on Linux, with what the parent held when it started this process.
    """
    if _STATUS.exists():
        [told] = (line for line in _STATUS.read_text("utf-8").splitlines() if line.startswith("VmHWM:"))
        return int(told.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
