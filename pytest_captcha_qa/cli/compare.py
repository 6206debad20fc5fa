"""`captcha-qa compare`: what changed from one release to another, with numbers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from pytest_captcha_qa.cli.answers import print_json, refusals_as_json, unread_or_not
from pytest_captcha_qa.cli.extras import need_gate
from pytest_captcha_qa.cli.values import BASELINE, not_empty, share
from pytest_captcha_qa.config.options import option
from pytest_captcha_qa.errors import BaselineMissing, NotEnoughData

if TYPE_CHECKING:
    from pytest_captcha_qa.reporting.comparison.releases import Regression, ReleaseComparison

_WORSE = 10


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help=f"baseline: {BASELINE}")],
    b: Annotated[str, typer.Argument(metavar="B", help="what is compared with it: a release or record files")],
    records: Annotated[
        list[str] | None, typer.Argument(help="record files, folders or patterns that hold the releases")
    ] = None,
    env: Annotated[str | None, typer.Option(metavar="NAME", help="environment; default the only one there")] = None,
    form: Annotated[list[str] | None, typer.Option(metavar="SLUG", help="judge this form by itself")] = None,
    alpha: Annotated[str, typer.Option(metavar="SHARE", help="false alarms when nothing has changed")] = "0.01",
    min_effect: Annotated[str, typer.Option(metavar="SHARE", help="smallest relative change that counts")] = "0.15",
    fail_on_worse: Annotated[bool, typer.Option("--fail-on-worse", help="exit 10 if anything is worse")] = False,
    as_object: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Tell what got better or worse from A to B, and what cannot be told yet.

    Exits 0 whatever was found, unless --fail-on-worse asks for 10; `captcha-qa gate` judges by the rules of [gate].
    11: nothing could be told for want of runs. 16: the baseline is not there or nothing in it can be compared.
    """
    with refusals_as_json(as_object, changes=[], notes=[]):
        need_gate("compare")
        regression = _regression(alpha, min_effect)
        for name, given in (("A", a), ("B", b), ("--env", env)):
            not_empty(name, given)
        with ExitStack() as stack:
            found, problems = _compared(stack, (a, b), records or (), env, regression, form or ())
    with unread_or_not():
        (_print_object if as_object else _print)(found, problems)
    _end(found, fail_on_worse)


def _regression(alpha: str, min_effect: str) -> Regression:
    from pytest_captcha_qa.reporting.comparison.releases import Regression

    return Regression(share("--alpha", alpha, most=0.2), share("--min-effect", min_effect, most=10))


def _compared(
    stack: ExitStack,
    sides: tuple[str, str],
    records: Sequence[str],
    env: str | None,
    regression: Regression,
    forms: Sequence[str],
) -> tuple[ReleaseComparison, tuple[str, ...]]:
    from pytest_captcha_qa.reporting.comparison.releases import compare_sources
    from pytest_captcha_qa.reporting.comparison.sides import check_forms, find_sides

    default = str(option("captcha_records").default)
    baseline, candidate, problems = find_sides(stack, *sides, records, default, env)
    check_forms(forms, baseline, candidate)
    found = compare_sources(baseline, candidate, regression=regression, own_rule_forms=forms)
    if not found.changes and found.measured:
        why = "; ".join(found.notes[:3])
        raise BaselineMissing(f"nothing of {candidate.label} can be compared with {baseline.label}: {why}")
    return found, problems


def _print_object(found: ReleaseComparison, problems: Sequence[str]) -> None:
    from pytest_captcha_qa.reporting.comparison.file import as_json

    print_json(as_json(found) | {"problems": list(problems)})


def _print(found: ReleaseComparison, problems: Sequence[str]) -> None:
    from pytest_captcha_qa.reporting.comparison.table import print_table, sentences

    print_table(found)
    for line in (*sentences(found), *(f"note: {problem}" for problem in problems)):
        typer.echo(line)


def _end(found: ReleaseComparison, fail_on_worse: bool) -> None:
    from pytest_captcha_qa.reporting.stats.comparing import Change

    told = [one for one in found.changes if one.change is not Change.NOT_ENOUGH_DATA]
    if not told:
        raise typer.Exit(NotEnoughData.exit_code)
    if fail_on_worse and found.of(Change.WORSE):
        raise typer.Exit(_WORSE)
