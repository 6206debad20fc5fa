"""Values of a nested body by dotted path."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_captcha_qa.model.body import copied, leaves, put

BODY: dict[str, Any] = {
    "query": "mutation",
    "variables": {"input": {"email": "a", "age": 3}, "tags": ["x", {"y": None}]},
}
SCALARS = st.none() | st.booleans() | st.integers() | st.text()
BODIES = st.dictionaries(
    st.text("abc", min_size=1),
    st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text("abc", min_size=1), inner)),
)


def test_each_value_has_a_dotted_path() -> None:
    assert dict(leaves(BODY)) == {
        "query": "mutation",
        "variables.input.email": "a",
        "variables.input.age": 3,
        "variables.tags.0": "x",
        "variables.tags.1.y": None,
    }


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("query", lambda body: body["query"]),
        ("variables.input.email", lambda body: body["variables"]["input"]["email"]),
        ("variables.tags.1.y", lambda body: body["variables"]["tags"][1]["y"]),
        ("variables.tags.0", lambda body: body["variables"]["tags"][0]),
        ("extensions.captcha.token", lambda body: body["extensions"]["captcha"]["token"]),
    ],
)
def test_a_value_is_put_where_its_path_leads_and_tables_are_made(path, found):
    body = copied(BODY)

    put(body, path, "new")

    assert found(body) == "new"
    assert "new" not in dict(leaves(BODY)).values()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("query.x", "leads through a value that has nothing below it"),
        ("variables.tags.2", "asks for 2 of a list of 2"),
        ("variables.tags.first", "asks for first of a list of 2"),
    ],
)
def test_a_path_that_leads_nowhere_is_told(path: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        put(copied(BODY), path, "new")


@given(BODIES)
def test_every_value_can_be_put_again_at_its_own_path(body: dict[str, Any]) -> None:
    changed = copied(body)
    for path, value in leaves(body):
        put(changed, path, value)

    assert changed == body
