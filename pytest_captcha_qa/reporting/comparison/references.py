"""What the name of a baseline may mean: the release before, a release, or record files."""

from __future__ import annotations

from pathlib import Path

PREVIOUS = "previous"
_SIGNS_OF_A_PATH = ("/", "\\", "*", "?", "[", ".jsonl", ".parquet")


def records_meant(reference: str | None, folder: Path) -> Path | None:
    """Return the record files that a baseline names, None where it is a release, `previous` or not given."""
    if reference is None or reference == PREVIOUS:
        return None
    path = folder / reference
    try:
        there = path.exists()
    except OSError:
        # Too long for a name of a file, say.
        there = False
    return path if there or any(sign in reference for sign in _SIGNS_OF_A_PATH) else None
