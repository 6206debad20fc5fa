"""The marker `captcha` as a typed value; nothing below the plugin sees a marker."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import NamedTuple

import pytest

MARKER = "captcha"
SIGNATURE = (
    "captcha(form=None, types=[...], tags=[...], subject=None, prefetch=True): a test of a CAPTCHA integration; "
    "narrows captcha_form_name to a form, to types or to tags"
)
FIXTURES = frozenset(
    {
        "captcha_attempt",
        "captcha_env",
        "captcha_form",
        "captcha_form_name",
        "captcha_http",
        "captcha_identity",
        "captcha_probe_family",
        "captcha_probes",
        "captcha_session",
        "captcha_solver",
        "captcha_standin",
        "captcha_token",
        "captcha_verify",
    }
)


class MarkerSpec(NamedTuple):
    """What the markers of one test say, the nearest first."""

    form: str | None = None
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    subject: str | None = None
    prefetch: bool = True


def is_captcha_test(item: pytest.Item) -> bool:
    """Return whether a test carries the marker or asks for one of our fixtures."""
    names = getattr(item, "fixturenames", ())
    return item.get_closest_marker(MARKER) is not None or not FIXTURES.isdisjoint(names)


def spec_of(node: pytest.Item | pytest.Metafunc) -> MarkerSpec:
    """Return the merged markers of a test.

    Raises:
        pytest.UsageError: an argument is unknown or of the wrong kind.
    """
    owner = node.definition if isinstance(node, pytest.Metafunc) else node
    merged: dict[str, object] = {}
    for marker in owner.iter_markers(MARKER):
        for name, value in _checked(marker, owner.nodeid).items():
            merged.setdefault(name, value)
    return MarkerSpec(**merged)  # type: ignore[arg-type]


def _checked(marker: pytest.Mark, nodeid: str) -> Mapping[str, object]:
    if marker.args:
        raise _usage(nodeid, f"takes names, not {marker.args[0]!r}; write form={marker.args[0]!r}")
    checked: dict[str, object] = {}
    for name, value in marker.kwargs.items():
        checker = _ARGUMENTS.get(name)
        if checker is None:
            near = get_close_matches(name, _ARGUMENTS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(_ARGUMENTS)}"
            raise _usage(nodeid, f"has no argument {name!r}; {hint}")
        checked[name] = checker(name, value, nodeid)
    return checked


def _text(name: str, value: object, nodeid: str) -> object:
    if value is not None and not isinstance(value, str):
        raise _usage(nodeid, f"takes a text for {name}, not {value!r}")
    return value


def _texts(name: str, value: object, nodeid: str) -> object:
    if isinstance(value, str) or not isinstance(value, list | tuple | set | frozenset):
        raise _usage(nodeid, f"takes a list for {name}, not {value!r}; write {name}=[{value!r}]")
    if not all(isinstance(one, str) for one in value):
        raise _usage(nodeid, f"takes a list of texts for {name}")
    return tuple(value)


def _flag(name: str, value: object, nodeid: str) -> object:
    if not isinstance(value, bool):
        raise _usage(nodeid, f"takes True or False for {name}, not {value!r}")
    return value


def _usage(nodeid: str, sentence: str) -> pytest.UsageError:
    return pytest.UsageError(f"{nodeid}: the marker captcha {sentence}")


_ARGUMENTS = {"form": _text, "types": _texts, "tags": _texts, "subject": _text, "prefetch": _flag}
