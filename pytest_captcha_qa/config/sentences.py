"""What pydantic found, in sentences for people: the key, its allowed values, the nearest name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from pytest_captcha_qa.config.document import KeyPath
from pytest_captcha_qa.config.problems import NO_SECRETS, names_a_secret, nearest, quoted

LATER = "is not in this version yet"

# How the key of a value that stands outside the file goes on, and what is written there.
_TWINS = {"_env": "the name of a variable", "_file": "the path of a file", "_from": "where the site says it"}

_Model = type[BaseModel] | None
_Say = Callable[[ErrorDetails, _Model], str]


def sentences(error: ValidationError, model: type[BaseModel]) -> Iterator[tuple[KeyPath, str]]:
    """Yield the path of each wrong value within the model's table, and what is wrong with it."""
    for details in error.errors():
        loc = tuple(map(str, details["loc"]))
        say = _SENTENCES.get(details["type"], _library)
        yield loc, say(details, _table_at(model, loc[:-1]))


def _library(details: ErrorDetails, table: _Model) -> str:
    return details["msg"][:1].lower() + details["msg"][1:]


def _key(details: ErrorDetails) -> str:
    names = [step for step in details["loc"] if isinstance(step, str)]
    return names[-1] if names else ""


def _missing(details: ErrorDetails, table: _Model) -> str:
    known = _keys(table).get(_key(details))
    return "is missing" + (f": {known.description}" if known and known.description else "")


def _unknown(details: ErrorDetails, table: _Model) -> str:
    name = _key(details)
    fields = _keys(table)
    later: Mapping[str, str] = getattr(table, "later", {})
    if name in later:
        return f"{LATER}{later[name]}"
    twins = [f"{name}{suffix} ({what})" for suffix, what in _TWINS.items() if f"{name}{suffix}" in fields]
    if twins and names_a_secret(name):
        return f"{NO_SECRETS}: use {' or '.join(twins)}"
    if twins:
        return f"is not written out here: use {' or '.join(twins)}"
    if names_a_secret(name) and not get_close_matches(name, fields, n=1, cutoff=0.75):
        return f"{NO_SECRETS}, and there is no such key"
    return "there is no such key" + nearest(name, fields)


def _choice(details: ErrorDetails, table: _Model) -> str:
    choices = re.findall(r"'([^']*)'", details["ctx"]["expected"])
    return not_among(_key(details), details["input"], choices)


def not_among(key: str, given: object, choices: Sequence[str]) -> str:
    """Return that a value is none of those to choose from, with the nearest."""
    near = get_close_matches(given.lower(), choices, n=1, cutoff=0.5) if isinstance(given, str) else []
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{quoted(key, given)} is not known; {hint}allowed: {', '.join(choices)}"


def _wrong_kind(wanted: str) -> _Say:
    def say(details: ErrorDetails, table: _Model) -> str:
        return f"must be {wanted}, not {_KINDS.get(type(details['input']), 'a date or time')}"

    return say


def _limit(words: str, limit: str) -> _Say:
    def say(details: ErrorDetails, table: _Model) -> str:
        return f"must be {words} {details['ctx'][limit]:g}, not {quoted(_key(details), details['input'])}"

    return say


def _own(details: ErrorDetails, table: _Model) -> str:
    return str(details["ctx"]["error"])


def _empty(details: ErrorDetails, table: _Model) -> str:
    return "must not be empty"


def _not_finite(details: ErrorDetails, table: _Model) -> str:
    return "must be an ordinary number"


_KINDS: dict[type[Any], str] = {
    datetime: "a date with a time",
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
}

_SENTENCES: dict[str, _Say] = {
    "missing": _missing,
    "extra_forbidden": _unknown,
    "enum": _choice,
    "literal_error": _choice,
    "string_type": _wrong_kind("a text in quotes"),
    "int_type": _wrong_kind("a whole number"),
    "float_type": _wrong_kind("a number"),
    "bool_type": _wrong_kind("true or false"),
    "date_type": _wrong_kind("a date without quotes, such as 2026-12-10"),
    "tuple_type": _wrong_kind("a list"),
    "dict_type": _wrong_kind("a table"),
    "mapping_type": _wrong_kind("a table"),
    "model_type": _wrong_kind("a table"),
    "greater_than": _limit("more than", "gt"),
    "greater_than_equal": _limit("at least", "ge"),
    "less_than_equal": _limit("at most", "le"),
    "string_too_short": _empty,
    "too_short": _empty,
    "finite_number": _not_finite,
    "value_error": _own,
}


def _keys(table: _Model) -> dict[str, FieldInfo]:
    """Return the fields of a table by the keys they have in the file."""
    return {known.alias or name: known for name, known in table.model_fields.items()} if table else {}


def _table_at(model: type[BaseModel], loc: KeyPath) -> _Model:
    """Return the model of the table at a path within a model."""
    found: _Model = model
    steps = iter(loc)
    for step in steps:
        if step.isdecimal():
            continue
        known = _keys(found).get(step)
        found = _model_in(known.annotation) if known else None
        if known and get_origin(known.annotation) is dict:
            next(steps, None)  # the name of one of the tables in it
    return found


def _model_in(annotation: Any) -> _Model:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)
