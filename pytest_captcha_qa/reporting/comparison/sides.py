"""What a person means by the two sides of a comparison: releases in records, or records themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from pytest_captcha_qa.errors import BaselineMissing, ConfigError, UnknownName
from pytest_captcha_qa.reporting.comparison.references import (
    PREVIOUS,
    known_releases,
    open_baseline,
    records_meant,
)
from pytest_captcha_qa.reporting.comparison.releases import previous_release, releases
from pytest_captcha_qa.reporting.comparison.samples import Source
from pytest_captcha_qa.reporting.dataset import Dataset, open_dataset


def find_sides(
    stack: ExitStack, baseline: str, candidate: str, records: Sequence[str], default: str, env: str | None
) -> tuple[Source, Source, tuple[str, ...]]:
    """Return both sides and what is wrong with their records; `stack` closes the datasets.

    A name means what `records_meant` takes it for, by the releases in `records`, or else in the folder `default`. Two
    names of files need no other records, and then none is read.

    Raises:
        BaselineMissing: the baseline is neither.
        ConfigError: the candidate is neither, a file cannot be read, or several environments are there and none named.
    """
    sides = (baseline, candidate)
    whole = None
    if records or None in map(_files, sides):
        if not records and not Path(default).exists():
            _refuse_releases(sides, default)
        whole = stack.enter_context(open_dataset([Path(record) for record in records or [default]]))
    known = known_releases(whole) if whole is not None else ()
    opened = {
        side: stack.enter_context(open_dataset([path]) if side == candidate else open_baseline(side, path))
        for side in sides
        if (path := _files(side, known)) is not None
    }
    datasets = [dataset for dataset in (whole, *opened.values()) if dataset is not None]
    name = _environment(datasets, env)
    after = _candidate(whole, opened, candidate, name)
    before = _baseline(whole, opened, baseline, name, after)
    problems = dict.fromkeys(problem for dataset in datasets for problem in dataset.problems)
    return before, after, tuple(problems)


def _refuse_releases(sides: tuple[str, str], folder: str) -> None:
    """Raise what is wrong where a side is no file and there is no folder of records that could hold a release."""
    side = next(side for side in reversed(sides) if _files(side) is None)
    error = BaselineMissing if side == sides[0] else ConfigError
    raise error(f"there is no record file or folder {side!r}, and no folder {folder} that could hold such a release")


def check_forms(forms: Iterable[str], *sides: Source) -> None:
    """Return quietly if each of the forms is on one of the sides.

    Raises:
        UnknownName: one is not; the message offers the nearest.
    """
    known = {
        str(slug)
        for side in sides
        for (slug,) in side.dataset.rows(f"SELECT DISTINCT slug FROM positive WHERE {side.where}", side.parameters)
    }
    for form in forms:
        if form not in known:
            raise UnknownName.among("form", form, known, where=f"{sides[0].label} and {sides[-1].label}")


def _candidate(whole: Dataset | None, opened: dict[str, Dataset], text: str, env: str) -> Source:
    if text in opened:
        return Source(opened[text], env, text)
    there = releases(whole, env) if whole is not None else []
    if whole is None or text not in there:
        raise UnknownName.among("release or file", text, there, where=f"the records of environment {env!r}")
    return Source(whole, env, text, text)


def _baseline(whole: Dataset | None, opened: dict[str, Dataset], text: str, env: str, after: Source) -> Source:
    """Return the baseline; runs of the candidate are no part of it."""
    if text in opened:
        source = Source(opened[text], env, text)
        return replace(source, left_out=frozenset(source.run_ids & after.run_ids))
    there = releases(whole, env) if whole is not None else []
    if whole is not None and text == PREVIOUS:
        found = previous_release(whole, env, after.release or "")
        if found is None:
            raise BaselineMissing(f"no complete run of a release before {after.label} in environment {env!r}")
        return Source(whole, env, found, found)
    if whole is None or text not in there:
        raise BaselineMissing(UnknownName.among("release or file", text, there, where=_where(env)).message)
    return Source(whole, env, text, text)


def _where(env: str) -> str:
    return f"the records of environment {env!r}, so there is no baseline"


def _environment(datasets: Sequence[Dataset], asked: str | None) -> str:
    found = (dataset.rows("SELECT DISTINCT env FROM runs WHERE env IS NOT NULL") for dataset in datasets)
    there: set[str] = {env for rows in found for (env,) in rows}
    if asked is not None:
        if asked not in there:
            raise UnknownName.among("environment", asked, there, where="the records")
        return asked
    if len(there) == 1:
        return there.pop()
    if not there:
        raise ConfigError("the records hold no run of any environment")
    raise ConfigError(f"the records hold runs of {', '.join(map(repr, sorted(there)))}; choose one with --env")


def _files(text: str, known: Collection[str] = ()) -> Path | None:
    return records_meant(text, Path(), lambda: known)
