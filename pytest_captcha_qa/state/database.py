"""One SQLite file as shared state: safe to create, and to share between threads, processes and forks."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_captcha_qa.engine.stop import Stop
from pytest_captcha_qa.errors import StoreUnavailable
from pytest_captcha_qa.state.mounts import network_file_system

_APPLICATION_ID = 0x43515354  # "CQST" in the file's header
_SCHEMA_VERSION = 1
_SCHEMA = (
    "CREATE TABLE keys (key TEXT PRIMARY KEY, state TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE cells (name TEXT PRIMARY KEY, value TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE clock (one INTEGER PRIMARY KEY CHECK (one = 1), seen REAL NOT NULL, ahead REAL NOT NULL)",
    "CREATE INDEX keys_until ON keys (until)",
    "CREATE INDEX cells_until ON cells (until)",
    "INSERT INTO clock (one, seen, ahead) VALUES (1, 0, 0)",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_SCHEMA_VERSION}",
)
_PURGE_EVERY = 60.0
# Seconds by which the stored clock may lag; a look that changes nothing then writes nothing.
_CLOCK_STEP = 0.5
# SQLite waits for a lock in C, where Ctrl-C is not seen, and looks less and less often: a process that waits long is
# overtaken by all that come later. So it waits in short goes, each of which begins anew with frequent looks.
_GO = 0.1
_LONGEST_PAUSE = 0.005
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})


@dataclass(frozen=True, slots=True)
class _Session:
    """A connection, the lock of its threads, and the file it stands for."""

    connection: sqlite3.Connection
    lock: threading.Lock
    identity: tuple[int, int] | None


class Database:
    """The file at `path`. Its clock runs with the machine's, but never back behind what the file has seen."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time, busy_timeout: float = 10.0) -> None:
        """Create the file if there is none, and prove that it can be read and written.

        Raises:
            StoreUnavailable: it cannot; the message names the path and says what to do.
        """
        self.path = path
        self._clock = clock
        self._busy_timeout = busy_timeout
        # By process: what a fork inherits is kept untouched, since closing it would disturb the parent's locks.
        self._sessions: dict[int, _Session] = {}
        self._purge_at = 0.0
        with self.transaction():
            pass

    @contextmanager
    def transaction(self) -> Iterator[tuple[sqlite3.Connection, float]]:
        """Give the connection inside one write transaction, and the store's time; an exception undoes it.

        Raises:
            StoreUnavailable: the file cannot be used.
        """
        with self._explained(), self._entered() as connection:
            if connection.in_transaction:  # an asynchronous exception struck just before the `try` below
                connection.execute("ROLLBACK")
            self._patiently(connection, "BEGIN IMMEDIATE")
            try:
                now = self._now(connection)
                self._purge(connection, now)
                yield connection, now
                connection.execute("COMMIT")
            except BaseException:  # Ctrl-C too must undo the transaction; it goes on afterwards
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the connection of this process; the next use opens it again."""
        session = self._sessions.pop(os.getpid(), None)
        if session is not None:
            with session.lock:
                session.connection.close()

    @contextmanager
    def _entered(self) -> Iterator[sqlite3.Connection]:
        session = self._sessions.get(os.getpid()) or self._opened()
        with session.lock:
            if session.identity != _identity(self.path):
                self._sessions.pop(os.getpid(), None)
                session.connection.close()
                raise StoreUnavailable(
                    f"the state store {self.path} was removed or replaced while in use and what it knew is "
                    "lost; the next call starts with what lies there now"
                )
            yield session.connection

    def _opened(self) -> _Session:
        """Return the session of this process, opened by whichever of its threads is first."""
        opened = self._connect()
        session = self._sessions.setdefault(os.getpid(), opened)
        if session is not opened:
            opened.connection.close()
        return session

    def _prepare(self) -> None:
        network = network_file_system(self.path.parent)
        if network is not None:
            raise StoreUnavailable(
                f"the state store {self.path} lies on a network file system ({network}), where SQLite "
                "cannot lock safely; put it on a local disk, or share a Redis between machines (store_env)"
            )
        self.path.parent.parent.mkdir(parents=True, exist_ok=True)
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        self._protect()

    def _protect(self) -> None:
        """Create the file readable by its user only; SQLite gives its -wal and -shm the same mode."""
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            # Not opened here: closing any descriptor of the file would drop the locks of this process on it.
            found = self.path.stat()
            if not stat.S_ISREG(found.st_mode):
                raise StoreUnavailable(
                    f"the state store {self.path} is a folder or device, not a file; choose another path"
                ) from None
            if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
                raise StoreUnavailable(
                    f"the state store {self.path} belongs to another user; remove it or choose another path"
                ) from None
            if found.st_mode & 0o077:
                self.path.chmod(0o600)

    def _connect(self) -> _Session:
        self._prepare()
        go = min(_GO, self._busy_timeout)
        connection = sqlite3.connect(self.path, timeout=go, isolation_level=None, check_same_thread=False)
        try:
            self._set_up(connection)
        except BaseException:  # whatever ended the set-up, the file is not left open
            connection.close()
            raise
        return _Session(connection, threading.Lock(), _identity(self.path))

    def _set_up(self, connection: sqlite3.Connection) -> None:
        # A spent token must stay spent after a power cut. This too meets whoever creates the file at the same time.
        self._patiently(connection, "PRAGMA synchronous = FULL")
        self._patiently(connection, "BEGIN IMMEDIATE")
        self._ensure_schema(connection)
        self._patiently(connection, "COMMIT")
        mode = self._patiently(connection, "PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise sqlite3.OperationalError("it cannot have a write-ahead log there")
        damage = self._patiently(connection, "PRAGMA quick_check(1)").fetchone()[0]
        if damage != "ok":
            raise sqlite3.DatabaseError(damage)

    def _patiently(self, connection: sqlite3.Connection, statement: str) -> sqlite3.Cursor:
        """Run a statement, again and again while another process holds the file; Ctrl-C ends that at once."""
        patience, until = Stop(), time.monotonic() + self._busy_timeout
        while True:
            try:
                return connection.execute(statement)
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() >= until:
                    raise
            patience.wait(random.uniform(0, _LONGEST_PAUSE))

    def _ensure_schema(self, connection: sqlite3.Connection) -> None:
        owner = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if empty and owner == 0:
            for statement in _SCHEMA:
                connection.execute(statement)
        elif owner != _APPLICATION_ID:
            raise StoreUnavailable(
                f"{self.path} is a database of another program; choose another path for the state store"
            )
        elif version > _SCHEMA_VERSION:
            raise StoreUnavailable(
                f"the state store {self.path} was written by a newer version of captcha-qa; "
                "update this one or choose another path"
            )

    def _now(self, connection: sqlite3.Connection) -> float:
        """Return the store's time; where the machine's clock was set back, the file keeps ahead of it."""
        seen, ahead = connection.execute("SELECT seen, ahead FROM clock").fetchone()
        now: float = self._clock() + ahead
        if now < seen:
            ahead, now = ahead + seen - now, seen
            connection.execute("UPDATE clock SET ahead = ?", (ahead,))
        elif now - seen >= _CLOCK_STEP:
            connection.execute("UPDATE clock SET seen = ?", (now,))
        return now

    def _purge(self, connection: sqlite3.Connection, now: float) -> None:
        if now >= self._purge_at:
            connection.execute("DELETE FROM keys WHERE until <= ?", (now,))
            connection.execute("DELETE FROM cells WHERE until <= ?", (now,))
            self._purge_at = now + _PURGE_EVERY

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn faults of the file into sentences."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(self._operational(str(error))) from error
        except sqlite3.Error as error:
            raise StoreUnavailable(
                f"the state store {self.path} is damaged or no store at all; delete it (it holds only "
                "short-lived state) or choose another path"
            ) from error
        except OSError as error:
            raise StoreUnavailable(
                f"the state store {self.path} cannot be created: {error.strerror or 'unknown fault'}; "
                "choose a path in a folder you can write to"
            ) from error

    def _operational(self, fault: str) -> str:
        if "locked" in fault:
            return (
                f"the state store {self.path} was locked by another process for {self._busy_timeout:g} s; "
                "look for a process that hangs"
            )
        if "full" in fault or "disk I/O" in fault:
            return f"the state store {self.path} cannot be written ({fault}); free space on its disk"
        return f"the state store {self.path} cannot be used ({fault}); choose a path you can read and write"


def _is_busy(error: sqlite3.Error) -> bool:
    # The low byte is the code, the rest tells more precisely who is in the way.
    return error.sqlite_errorcode & 0xFF in _BUSY


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
