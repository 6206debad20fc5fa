"""Files made anew beside those whose place they take, and what a process that was killed left of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

_DRAFT = re.compile(r"\..+\.([1-9]\d{0,9})\.new")


def draft_of(path: Path) -> Path:
    """Return where this process makes a file anew; no reader of records takes it for one."""
    return path.with_name(f".{path.name}.{os.getpid()}.new")


def drop_abandoned(folder: Path) -> list[Path]:
    """Delete the drafts below a folder whose process has ended, and return those that stay.

    Where that cannot be told every process counts as running.
    """
    drafts = [(path, found) for path in folder.rglob(".*.new") if (found := _DRAFT.fullmatch(path.name))]
    return sorted(path for path, found in drafts if _runs(int(found[1])) or not _deleted(path))


def _deleted(path: Path) -> bool:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _runs(process: int) -> bool:
    # Elsewhere a signal 0 is no question.
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
