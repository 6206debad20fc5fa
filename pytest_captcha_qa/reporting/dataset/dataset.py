"""The dataset: record files of any number of runs behind one locked DuckDB."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_captcha_qa.reporting.dataset import packed, views
from pytest_captcha_qa.reporting.dataset.copies import drop_copies
from pytest_captcha_qa.reporting.dataset.database import connect, lock
from pytest_captcha_qa.reporting.dataset.loading import load, plain_sources, sorted_out
from pytest_captcha_qa.reporting.dataset.sieve import Sieve
from pytest_captcha_qa.reporting.dataset.widening import widen

if TYPE_CHECKING:
    import duckdb
    import numpy

Parameters = Sequence[object] | Mapping[str, object]

MEMORY = "512MB"
# Bytes of records up to which every field of every attempt is kept ready.
WIDE = 256 << 20
NAMED_PROBLEMS = 20


class Dataset:
    """Tables over record files; close it, or use it in a `with`.

    `problems` says in sentences what was not read or read with reservations; `damaged` counts the damaged lines, of
    which the first twenty are named there.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, folder: Path, found: Sieve, widened: Callable[[], None] | None
    ) -> None:
        """Take over an open database and its private folder; `widened` makes the fields that are seldom asked for."""
        self._connection = connection
        self._folder = folder
        # Lines of records lie there, so it goes also where nobody closes.
        self._removed = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._widened = widened
        self.damaged = found.damaged
        self.problems = tuple(found.problems[:NAMED_PROBLEMS])

    def rows(self, query: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query; values come in by `parameters` (`?` or `$name`) only."""
        return self._asked(query, parameters).fetchall()

    def columns(self, query: str, parameters: Parameters = ()) -> dict[str, numpy.ndarray[Any, Any]]:
        """Return the columns of a query as NumPy arrays, masked where values are NULL."""
        return self._asked(query, parameters).fetchnumpy()

    def _asked(self, query: str, parameters: Parameters) -> duckdb.DuckDBPyConnection:
        import duckdb

        try:
            return self._connection.execute(query, parameters or None)
        except duckdb.BinderException:
            if self._widened is None:
                raise
        # Perhaps a field that is read when it is first asked for.
        self._widened()
        self._widened = None
        return self._connection.execute(query, parameters or None)

    def close(self) -> None:
        """Let go of the database and of its private folder."""
        self._connection.close()
        self._removed()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_dataset(sources: Sequence[Path], *, memory: str = MEMORY) -> Dataset:
    """Return the records in files, folders (searched whole) and patterns as tables.

    Raises:
        ConfigError: the extra `gate` is missing, or a file or folder that was named does not exist or cannot be read.
    """
    folder = Path(tempfile.mkdtemp(prefix="captcha-qa-"))
    try:
        return _opened(sources, connect(folder, memory), folder)
    except BaseException:  # Ctrl-C too must not leave the folder behind
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _opened(sources: Sequence[Path], connection: duckdb.DuckDBPyConnection, folder: Path) -> Dataset:
    history, lines = sorted_out(sources)
    plain = plain_sources(lines, folder)
    found = Sieve(folder)
    wide = sum(source.plain.stat().st_size for source in plain) <= WIDE
    staged = load(connection, plain, found, wide=wide)
    packed.add_packed(connection, history)
    copies = drop_copies(connection)
    found.problems += [f"{file}: its attempts stand in other files too; they are counted once" for file in copies]
    views.create(connection, wide=wide)
    lock(connection, [*history, *(source.plain for source in plain)])
    widened = partial(widen, connection, [source.plain for source in plain], staged)
    return Dataset(connection, folder, found, None if wide else widened)
