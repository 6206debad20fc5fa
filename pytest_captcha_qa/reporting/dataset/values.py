"""Fields of a parsed line `f` as the exact reader gives them: texts cut, numbers rounded."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_captcha_qa.records.lines import DECIMALS, NODEID_LIMIT, PREFIX_LIMIT, TEXT_LIMIT
from pytest_captcha_qa.reporting.dataset.columns import ATTEMPT

_PRICE_DECIMALS = 6


def structure(fields: Mapping[str, str]) -> str:
    """Return fields and their types as json_transform wants them."""
    return "{" + ", ".join(f'"{name}": {_structure(sql)}' for name, sql in fields.items()) + "}"


def _structure(sql: str) -> str:
    return structure(_inner(sql)) if sql.startswith("STRUCT(") else f'"{sql}"'


def _inner(sql: str) -> dict[str, str]:
    parts = (part.rsplit(" ", 1) for part in sql[len("STRUCT(") : -1].split(", "))
    return {name.strip('"'): kind for name, kind in parts}


def value(name: str, sql: str) -> str:
    """Return the expression for a field that is kept as that type."""
    field = f'f."{name}"'
    if name == "token_prefix":
        return f"left({field}, {PREFIX_LIMIT})"
    if name == "synthetic":
        return f"coalesce({field}, true)"
    if sql.startswith("STRUCT("):
        shown = ", ".join(f'"{part}" := {_simple(f"{field}.{part}", kind)}' for part, kind in _inner(sql).items())
        packed = f"struct_pack({shown})"
        return f"CASE WHEN {field} IS NOT NULL THEN {packed} END" if ATTEMPT[name].null else packed
    limit = NODEID_LIMIT if name == "nodeid" else TEXT_LIMIT
    return _simple(field, sql, limit, _PRICE_DECIMALS if name == "price" else DECIMALS)


def _simple(field: str, sql: str, limit: int = TEXT_LIMIT, decimals: int = DECIMALS) -> str:
    match sql:
        case "VARCHAR":
            return _cut(field, limit)
        case "DOUBLE":
            return _rounded(field, decimals)
    return field


# DuckDB looks at the other branches of CASE, and puts the rows together again, only where the first does not hold for
# all that it has at hand. So the first one is what nearly every line is.
def _cut(text: str, limit: int) -> str:
    return (
        f"CASE WHEN (strlen({text}) <= {limit}) IS NOT FALSE THEN {text}"
        f" WHEN length({text}) > {limit} THEN left({text}, {limit - 1}) || '…' ELSE {text} END"
    )


def _rounded(number: str, decimals: int) -> str:
    """Return the number as Python rounds it: by what it is exactly, also where it lies halfway."""
    power = 10**decimals
    nearest = f"round({number} * {power})"
    clear = f"abs({number} * {power} - {nearest}) < 0.499 AND abs({number}) < {1e12 / power}"
    return (
        f"CASE WHEN ({clear}) IS NOT FALSE THEN {nearest} / {power} WHEN NOT isfinite({number}) THEN NULL"
        f" WHEN abs({number}) < 1e16 THEN format('{{:.{decimals}f}}', {number})::DOUBLE ELSE {number} END"
    )
