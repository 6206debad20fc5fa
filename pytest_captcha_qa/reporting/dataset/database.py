"""A DuckDB in memory that reads what it is told to and nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from errno import EIO
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_captcha_qa.errors import ConfigError

if TYPE_CHECKING:
    import duckdb

_MISSING = "reading history needs DuckDB; install it with: pip install 'pytest-captcha-qa[gate]'"
_SIGNS = re.compile(r"[*?[]")


def connect(folder: Path, memory: str) -> duckdb.DuckDBPyConnection:
    """Return a database in memory that spills into `folder` and fetches no extension.

    Raises:
        ConfigError: DuckDB is not installed.
    """
    try:
        import duckdb
    except ModuleNotFoundError:
        raise ConfigError(_MISSING) from None
    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": memory,
            "temp_directory": str(folder / "spill"),
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
        },
    )
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def write(connection: duckdb.DuckDBPyConnection, query: str, parameters: Mapping[str, object]) -> None:
    """Run a query that writes the file `$new` or `$file`.

    Raises:
        OSError: it cannot be written; `strerror` says why in the words of DuckDB.
    """
    import duckdb

    try:
        connection.execute(query, parameters)
    except duckdb.IOException as failure:
        why = str(failure).removeprefix("IO Error: ").splitlines()[0]
        raise OSError(EIO, why, parameters.get("new") or parameters.get("file")) from None


def lock(connection: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> None:
    """From here on no query reads a file but these, writes one, loads an extension or changes a setting."""
    allowed = [form for path in files for form in {str(path), literal(path)}]
    connection.execute("SET allowed_paths = $files", {"files": allowed})
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def literal(path: Path) -> str:
    """Return a path as a query that reads files must be given it: DuckDB takes `*`, `?` and `[` for a pattern."""
    return _SIGNS.sub(r"[\g<0>]", str(path))


def listed(columns: Mapping[str, str]) -> str:
    """Return columns and their types as CREATE TABLE wants them."""
    return ", ".join(f'"{name}" {kind}' for name, kind in columns.items())


def reader(columns: Mapping[str, str]) -> str:
    """Return the query that reads the JSON lines in `$files` with these columns."""
    wanted = ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items())
    return (
        "SELECT * FROM read_json($files, format = 'newline_delimited', records = true,"
        f" maximum_object_size = 16777216, columns = {{{wanted}}})"
    )
