"""Both ports in one SQLite file, shared by all processes of one machine."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import platformdirs

from pytest_captcha_qa.engine.key_state import KeyState
from pytest_captcha_qa.engine.transitions import remembered
from pytest_captcha_qa.errors import StoreUnavailable
from pytest_captcha_qa.state.cells import Cell, CellLimits, Change, living
from pytest_captcha_qa.state.database import Database
from pytest_captcha_qa.state.listing import KeyView, view
from pytest_captcha_qa.state.transitional import Transition, TransitionalStore

T = TypeVar("T")

_EPOCH = "sqlite"  # what was committed to a file outlives every process
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


def default_path(name: str) -> Path:
    """Return where the store called `name` lies in the user's cache."""
    folder = platformdirs.user_cache_path("captcha-qa", appauthor=False)
    return folder / f"{quote(name, safe='')}.sqlite3"


class SqliteStore(TransitionalStore):
    """Keys in a file only its user can read."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        """Open or create the file; `clock` is the one all processes of the machine share.

        Raises:
            StoreUnavailable: the path cannot hold a store; the message says why.
        """
        super().__init__(epoch=_EPOCH)
        self._database = Database(path, clock=clock)

    def _apply(self, key: str, transition: Transition[T]) -> T:
        with self._database.transaction() as (connection, now):
            before = _readable(self._database, lambda: _load_key(connection, key))
            state, answer = transition(before, self._moment(now))
            if state is not None and state != before:
                connection.execute(
                    "INSERT OR REPLACE INTO keys (key, state, until) VALUES (?, ?, ?)",
                    (key, json.dumps(state.to_json()), state.keep_until),
                )
            return answer

    def views(self) -> Iterator[KeyView]:
        """Yield what may be seen of each key, for an operator."""
        with self._database.transaction() as (connection, now):
            rows = connection.execute("SELECT key, CAST(state AS BLOB) FROM keys WHERE until > ?", (now,)).fetchall()
            at = self._moment(now)
        for key, raw in rows:
            state = remembered(_readable(self._database, partial(_state_of, raw)), at)
            if state is not None:
                yield view(key, state, now)

    def close(self) -> None:
        """Close the file."""
        self._database.close()


class SqliteLimits(CellLimits):
    """Counters and leases in the same file as the keys."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        """Open or create the file; `clock` is the one all processes of the machine share.

        Raises:
            StoreUnavailable: the path cannot hold a store; the message says why.
        """
        self._database = Database(path, clock=clock)

    def _apply(self, name: str, change: Change[T]) -> T:
        with self._database.transaction() as (connection, now):
            before = _readable(self._database, lambda: _load_cell(connection, name))
            cell, answer = change(living(before, now), now)
            if cell is None and before is not None:
                connection.execute("DELETE FROM cells WHERE name = ?", (name,))
            elif cell is not None and cell != before:
                connection.execute(
                    "INSERT OR REPLACE INTO cells (name, value, until) VALUES (?, ?, ?)",
                    (name, json.dumps(cell.value), cell.until),
                )
            return answer

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _readable(database: Database, load: Callable[[], T]) -> T:
    """Return what `load` reads.

    Raises:
        StoreUnavailable: the entry is not one that this version writes.
    """
    with suppress(*_UNREADABLE):
        return load()
    # Raised here, outside any `except`: the reader's exceptions hold the entry, and so perhaps a token.
    raise StoreUnavailable(
        f"the state store {database.path} holds an entry that cannot be read; delete the file (it holds only "
        "short-lived state) or choose another path"
    )


# Read as bytes: where text is not UTF-8, SQLite's error would show it.
def _load_key(connection: sqlite3.Connection, key: str) -> KeyState | None:
    row = connection.execute("SELECT CAST(state AS BLOB) FROM keys WHERE key = ?", (key,)).fetchone()
    return _state_of(row[0]) if row else None


def _state_of(raw: bytes) -> KeyState:
    return KeyState.from_json(json.loads(raw))


def _load_cell(connection: sqlite3.Connection, name: str) -> Cell | None:
    row = connection.execute("SELECT CAST(value AS BLOB), until FROM cells WHERE name = ?", (name,)).fetchone()
    return Cell(json.loads(row[0]), float(row[1])) if row else None
