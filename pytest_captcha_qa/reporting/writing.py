"""Files that others read, written in one step."""

from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from pathlib import Path

from pytest_captcha_qa.errors import RecordError


def write_json(content: object, path: Path, *, what: str) -> None:
    """Write JSON in ASCII; a reader sees the old file or the whole new one. `what` names it in the error.

    Raises:
        RecordError: it cannot be written there.
    """
    text = json.dumps(content, indent=2, ensure_ascii=True, allow_nan=False)
    write_whole(f"{text}\n".encode("ascii"), path, what=what)


def write_whole(content: bytes, path: Path, *, what: str) -> None:
    """Write a file; a reader sees the old one or the whole new one. A link stays, what it leads to is written.

    A device or a pipe (`/dev/null`, `/dev/stdout`) is written to: a file in its place would take it from everybody.

    Raises:
        RecordError: it cannot be written there.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.exists() and not path.is_file():
            path.write_bytes(content)
        else:
            _replace(content, Path(os.path.realpath(path)))
    except OSError as failure:
        raise RecordError(f"{what} cannot be written to {path}: {failure.strerror}") from None


def forget_earlier(path: Path) -> None:
    """Remove what an earlier run wrote there; where it cannot be removed, writing the new one will say why."""
    with suppress(OSError):
        if path.is_file():
            path.unlink()


def _replace(content: bytes, path: Path) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        draft.write_bytes(content)
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
