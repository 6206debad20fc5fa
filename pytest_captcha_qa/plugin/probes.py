"""Conformance probes in a session: which were asked for, and what the fixtures run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_captcha_qa.errors import ConfigError, ProbeFailed, UnknownName, VerificationBypassed
from pytest_captcha_qa.plugin import options, reports

if TYPE_CHECKING:
    from pytest_captcha_qa.conformance.probe import Probe
    from pytest_captcha_qa.conformance.runner import Finding
    from pytest_captcha_qa.conformance.trial import Lab
    from pytest_captcha_qa.plugin.session import CaptchaRun

FIXTURE = "captcha_probe_family"
SELECTED: pytest.StashKey[tuple[Probe, ...]] = pytest.StashKey()
_LAB: pytest.StashKey[Lab] = pytest.StashKey()


def select(config: pytest.Config) -> None:
    """Read which probes are asked for.

    Raises:
        pytest.UsageError: one of them does not exist.
    """
    from pytest_captcha_qa.conformance.catalogue import select as chosen

    asked = options.early(config, "captcha_probes")
    try:
        config.stash[SELECTED] = chosen(str(asked)) if asked else ()
    except ConfigError as error:
        raise pytest.UsageError(error.message) from None


def asked_for(config: pytest.Config) -> bool:
    """Return whether any probe was asked for."""
    return bool(config.stash.get(SELECTED, ()))


def has_destructive(config: pytest.Config) -> bool:
    """Return whether a probe was asked for that must be alone at the site."""
    return any(probe.destructive for probe in config.stash.get(SELECTED, ()))


def parametrise(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for a family once for each family of the probes that were asked for."""
    if FIXTURE not in metafunc.fixturenames:
        return
    from pytest_captcha_qa.conformance.catalogue import families

    selected: tuple[Probe, ...] = metafunc.config.stash.get(SELECTED, ())
    names = [str(family) for family in families(selected)]
    if names:
        metafunc.parametrize(FIXTURE, names, ids=names, indirect=True)


def put_destructive_last(items: list[pytest.Item]) -> None:
    """Let what is destructive run after everything else."""
    items.sort(key=_is_destructive)


def _is_destructive(item: pytest.Item) -> bool:
    named = getattr(getattr(item, "callspec", None), "params", {}).get(FIXTURE)
    return named is not None and any(probe.destructive for probe in _of_family(item.config, named))


def _of_family(config: pytest.Config, family: str) -> Sequence[Probe]:
    return [probe for probe in config.stash.get(SELECTED, ()) if probe.family == family]


class ProbeReport(tuple["Finding", ...]):
    """What the probes of one family say of one form; each has `probe`, `judged`, `fails` and `counts`."""

    __slots__ = ()

    def require_safe(self) -> None:
        """Return quietly if nothing counts against the form, and something speaks for it.

        Raises:
            VerificationBypassed: it accepts what it must refuse.
            ProbeFailed: it crashed, or accepted that while it refuses good tokens.
        """
        __tracebackhide__ = True
        failing = sorted((finding for finding in self if finding.fails), key=lambda finding: not finding.counts)
        if failing:
            error = VerificationBypassed if any(finding.counts for finding in failing) else ProbeFailed
            raise error("; ".join(f"form {finding.form!r}, {finding}" for finding in failing))
        if self and not any(finding.judged.safe for finding in self):
            pytest.skip("; ".join(map(str, self)))


def run_family(run: CaptchaRun, item: pytest.Item, form: str, family: str) -> ProbeReport:
    """Return what the selected probes of a family say of a form.

    Skips the test where none of that family was asked for: an empty report would speak for the form.

    Raises:
        UnknownName: there is no such form or family.
        CaptchaQAError: they could not be run; see `conformance.runner`.
    """
    from pytest_captcha_qa.conformance import runner
    from pytest_captcha_qa.conformance.probe import Family as Families
    from pytest_captcha_qa.wiring.probing import lab_of

    lab = item.config.stash.get(_LAB, None)
    if lab is None:
        lab = item.config.stash[_LAB] = lab_of(run.engine, run.stand_in)
    if form not in run.environment.targets:
        raise UnknownName.among("form", form, run.environment.targets)
    if family not in set(Families):
        raise UnknownName.among("family of probes", family, map(str, Families))
    asked = _of_family(item.config, family)
    if not asked:
        pytest.skip(
            f"no conformance probe of family {family!r} was asked for; --captcha-probes={family} runs its safe ones"
        )
    found = runner.run_family(
        lab,
        run.environment.targets[form],
        Families(family),
        asked,
        nodeid=item.nodeid,
        least=run.settings.run.probe_severity,
    )
    item.stash[reports.FINDINGS] = (*item.stash.get(reports.FINDINGS, ()), *found)
    return ProbeReport(found)
