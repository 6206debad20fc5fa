"""Whatever a file says: it is taken, or refused in sentences."""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_captcha_qa.config.catalog import Catalog
from pytest_captcha_qa.config.document import Document
from pytest_captcha_qa.config.settings import RunSettings, Settings
from pytest_captcha_qa.config.sources import load
from pytest_captcha_qa.config.variables import Variables
from pytest_captcha_qa.errors import ConfigError

FULL = tomllib.loads((Path(__file__).parents[3] / "fixtures" / "environments" / "full.toml").read_text("utf-8"))


def paths(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the path of every key of nested tables."""
    found = [path] if path else []
    for name, inner in value.items() if isinstance(value, dict) else ():
        found += paths(inner, (*path, name))
    return found


scalars = st.one_of(
    st.integers(-2, 1000),
    st.booleans(),
    st.floats(allow_nan=True),
    st.sampled_from(["", "qa", "staging", "live", "main", "/x", "https://a.example", "{x}", "*", "none", "\x00"]),
    st.dates(),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.just("extends") | st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(st.lists(st.tuples(st.sampled_from(paths(FULL)), values | st.none()), min_size=1, max_size=3))
@settings(max_examples=200, deadline=None)
def test_a_changed_document_is_taken_or_refused_in_sentences(
    changes: list[tuple[tuple[str, ...], Any]],
) -> None:
    tables = copy.deepcopy(FULL)
    for path, value in changes:
        change(tables, path, value)
    document = Document("x.toml", Path("/nowhere"), tables)
    try:
        catalog = Catalog.of(document)
    except ConfigError as error:
        refused = error.message
    else:
        refused = ""
        require_environments(catalog)
    assert all(line.startswith("x.toml: ") for line in refused.split("\n") if refused)


def require_environments(catalog: Catalog) -> None:
    """Build every environment of a catalog."""
    run = load(Path("/nowhere"), Path("/nowhere"), options={}, ini={}, environ={}).run
    assert isinstance(run, RunSettings)
    for name in catalog.environments:
        built = Settings(Path("/nowhere"), run, catalog, Variables({}, {}, Path("/nowhere")), {})
        assert built.environment(name).rules().env == name
        assert built.gate is None or built.gate.of("turnstile", form="signup") is not None


def change(tables: Any, path: tuple[str, ...], value: Any) -> None:
    """Put a value in the place of another one, None: take it away."""
    for name in path[:-1]:
        tables = tables.get(name) if isinstance(tables, dict) else None
    if not isinstance(tables, dict):
        return
    if value is None:
        tables.pop(path[-1], None)
    else:
        tables[path[-1]] = value


def is_a_key(path: tuple[str, ...]) -> bool:
    """Tell the keys of the format from names of the team's own choice."""
    own_names = ("accounts", "projects", "env", "forms", "fields", "json")
    return len(path) == 1 or (path[-2] not in own_names and "body" not in path[:-1])


@pytest.mark.parametrize("path", [path for path in paths(FULL) if is_a_key(path)], ids=".".join)
def test_a_misspelt_key_is_never_passed_over(path: tuple[str, ...]) -> None:
    tables = copy.deepcopy(FULL)
    parent: Any = tables
    for name in path[:-1]:
        parent = parent[name]
    parent[path[-1] + "x"] = parent.pop(path[-1])
    with pytest.raises(
        ConfigError, match=r"x: there is no such|secrets never|x' is no (time|captcha type|project|form)"
    ):
        Catalog.of(Document("x.toml", Path("/nowhere"), tables))
