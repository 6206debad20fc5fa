"""The sink of record files: `<folder>/<env>/<run_id>[-shard][-worker].jsonl`, one append per line."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pytest_captcha_qa.errors import RecordError
from pytest_captcha_qa.model.record import AttemptLine, Footer, Header, Line, timestamp
from pytest_captcha_qa.records.lines import encode, to_json

__all__ = ["JsonlSink", "file_stem", "make_folder", "safe_name", "to_json"]

NAME_LIMIT = 80
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_ADVICE = {
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "the disk quota is used up: free some space",
    errno.EACCES: "permission is denied: make the folder writable",
    errno.EPERM: "permission is denied: make the folder writable",
    errno.EROFS: "the file system is read-only",
    errno.ENOTDIR: "a file stands where a folder is needed: move it away",
    errno.EEXIST: "a file stands where a folder is needed: move it away",
}


def safe_name(name: str) -> str:
    """Return `name` as one part of a path: [A-Za-z0-9._-], no dot or dash in front, 80 characters at most."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", name[:NAME_LIMIT]).lstrip(".-") or "unnamed"


def file_stem(run_id: str, shard: str | None = None, worker: str | None = None) -> str:
    """Return a record file's name without its suffix."""
    return "-".join(safe_name(part) for part in (run_id, shard, worker) if part is not None)


def make_folder(folder: Path, env: str) -> None:
    """Make the folder of an environment's records, so that one that cannot be used is known before anything is sent.

    Raises:
        RecordError: it cannot be made or written; the message says where and why.
    """
    place = folder / safe_name(env)
    try:
        place.mkdir(parents=True, exist_ok=True)
        if not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as failure:
        raise _unwritable(place, failure) from None


class JsonlSink:
    """Appends lines to a file of its own; a RecordSink that threads may share.

    The file is new: where one of that name exists, a numeric suffix is added. A forked child never writes to
    its parent's file; it opens its own on its first write.
    """

    def __init__(
        self,
        folder: Path,
        header: Header,
        *,
        worker: str | None = None,
        utc: Callable[[], float] = time.time,
    ) -> None:
        """Open the file and write its header.

        Raises:
            RecordError: the folder or file cannot be made or written; the message says where and why.
        """
        self._folder = folder / safe_name(header.env)
        self._stem = file_stem(header.run_id, header.shard, worker)
        self._header = header
        self._utc = utc
        self._lock = threading.Lock()
        self._path = self._folder / f"{self._stem}.jsonl"
        self._fd: int | None = None
        self._attempts = 0
        self._torn = False
        self._closed = False
        self._open()
        _OPEN.add(self)

    @property
    def path(self) -> Path:
        """The file this process writes, or would have to write next."""
        return self._path

    @property
    def attempts(self) -> int:
        """How many attempts this process has written to it."""
        return self._attempts

    def write(self, line: Line) -> None:
        """Append one line, with one system call.

        Raises:
            RecordError: it could not be written whole, or the sink is closed.
        """
        packed = encode(line)
        with self._lock:
            if self._closed:
                raise RecordError(f"a record was not written: {self._path} is closed already")
            self._append(self._open() if self._fd is None else self._fd, packed)
            self._attempts += isinstance(line, AttemptLine)

    def close(self, complete: bool) -> None:
        """Write the footer, with the number of attempts, and close the file; a second call does nothing.

        Raises:
            RecordError: the footer could not be written; the file is closed and counts as incomplete.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._fd is not None:
                self._finish(self._fd, complete)

    def _finish(self, fd: int, complete: bool) -> None:
        run_id, now = self._header.run_id, timestamp(self._utc())
        try:
            self._append(fd, encode(Footer(ts=now, run_id=run_id, complete=complete, attempts=self._attempts)))
        finally:
            os.close(fd)
            self._fd = None

    def _open(self) -> int:
        header = encode(self._header)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._path, fd = _create(self._folder, self._stem)
        except OSError as failure:
            raise _unwritable(self._folder, failure) from None
        try:
            self._append(fd, header)
        except RecordError:
            self._discard(fd)
            raise
        self._fd = fd
        return fd

    def _discard(self, fd: int) -> None:
        os.close(fd)
        self._torn = False
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _append(self, fd: int, packed: bytes) -> None:
        # After a torn line a newline first, so that only the torn one is lost.
        whole = b"\n" + packed if self._torn else packed
        try:
            written = os.write(fd, whole)
        except OSError as failure:
            raise _unwritable(self._path, failure) from None
        self._torn = written < len(whole)
        if self._torn:
            raise RecordError(
                f"a record was cut off in {self._path}: {written} of {len(whole)} bytes were written;"
                " free some disk space or choose another folder with --captcha-records"
            )

    def _leave_to_parent(self) -> None:
        """In a forked child: let go of the parent's file; another thread may have held the lock."""
        self._lock = threading.Lock()
        if self._fd is not None:
            os.close(self._fd)
        self._fd = None
        self._attempts = 0
        self._torn = False
        self._header = replace(self._header, ts=timestamp(self._utc()))


def _create(folder: Path, stem: str) -> tuple[Path, int]:
    path, number = folder / f"{stem}.jsonl", 1
    while True:
        try:
            return path, os.open(path, _FLAGS, 0o666)
        except FileExistsError:
            number += 1
            path = folder / f"{stem}-{number}.jsonl"


def _unwritable(path: Path, failure: OSError) -> RecordError:
    why = _ADVICE.get(failure.errno or 0, failure.strerror or "the system refused")
    return RecordError(f"records cannot be written to {path}: {why}, or choose another with --captcha-records")


_OPEN: weakref.WeakSet[JsonlSink] = weakref.WeakSet()


def _after_fork() -> None:
    for sink in list(_OPEN):
        sink._leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
