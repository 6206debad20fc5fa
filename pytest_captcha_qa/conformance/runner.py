"""Runs the probes of one family on one form, within the harm rules, and tells each as an event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from pytest_captcha_qa.conformance.judge import Judged, inconclusive, not_applicable, with_control
from pytest_captcha_qa.conformance.place import PATIENCE
from pytest_captcha_qa.conformance.probe import Family, Keys, Probe
from pytest_captcha_qa.conformance.trial import Control, Lab, Trial
from pytest_captcha_qa.engine.events import Event, EventValue
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import (
    BalanceExhausted,
    BudgetExhausted,
    DeadlineExceeded,
    PageError,
    ProviderError,
    ScopeDenied,
    StoreError,
    TargetUnavailable,
    VerifierError,
)
from pytest_captcha_qa.model.attempt import KeyMode
from pytest_captcha_qa.model.captcha import facts
from pytest_captcha_qa.model.form import Effect, EnvKind, FormSpec
from pytest_captcha_qa.model.probing import ProbeVerdict, Severity
from pytest_captcha_qa.scope import Probes

PROBED = "probe"
"""The name of the events."""

_AGAINST = frozenset({ProbeVerdict.UNSAFE, ProbeVerdict.CRASH})
_NOT_FOUND_OUT = (
    BalanceExhausted, BudgetExhausted, DeadlineExceeded, PageError, ProviderError, StoreError, TargetUnavailable,
    VerifierError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """What one probe says of one form.

    `control` says whether the family's positive control passed, None where none is needed; `fails`: the test fails of
    it; `counts`: it is a bypass that the exit code tells.
    """

    probe: Probe
    form: str
    judged: Judged
    control: bool | None
    fails: bool
    counts: bool

    def __str__(self) -> str:
        """The probe, its severity, the verdict and why, in one line."""
        return (
            f"{self.probe.id} {self.probe.title} ({self.probe.severity}): {self.judged.verdict}: {self.judged.reason}"
        )


def run_family(
    lab: Lab, form: FormSpec, family: Family, probes: Sequence[Probe], *, nodeid: str, least: Severity
) -> list[Finding]:
    """Return what the selected probes of a family say of a form; each is recorded as an event.

    `least`: the severity from which an unsafe probe counts.

    Raises:
        ScopeDenied: the page is not authorised, or its proof allows no probes.
        CaptchaQAError: the configuration cannot work, or the run was stopped.
    """
    trial = Trial(lab, form, nodeid)
    grant = trial.services.grants.grant(trial.url)
    if grant.probes is Probes.NONE:
        raise ScopeDenied(
            f"the proof of {grant.origin} allows no probes; make one with "
            f"`captcha-qa authorise {grant.env} --probes safe`",
            reason="probes_not_allowed",
        )
    trial.read_only = _only_reads(trial) is not None
    alone = any(probe.destructive for probe in probes) and not trial.read_only
    trial.stops_at_limits = alone
    deadline = Deadline(PATIENCE, what="waiting for other tests")
    with lab.place.alone(deadline) if alone else nullcontext():
        return list(_findings(trial, family, probes, least, grant.probes))


def _findings(
    trial: Trial, family: Family, probes: Sequence[Probe], least: Severity, allowed: Probes
) -> Iterator[Finding]:
    for probe in sorted(probes, key=lambda probe: probe.destructive):
        judged = _kept_from(trial, probe, allowed) or _stopped(trial, family, probe)
        control: bool | None = None
        if judged is None:
            # First of all: a probe may meet a limit, or have the account locked.
            beside = trial.control() if _has_control(probe) else None
            control = beside.failed is None if beside is not None else None
            judged = _judged(trial, probe, beside)
        if judged.accepted:
            trial.harm.stop_family(family, f"{probe.id} was accepted")
        fails = judged.verdict in _AGAINST and probe.severity.reaches(least)
        counts = fails and judged.verdict is ProbeVerdict.UNSAFE and control is not False
        finding = Finding(probe, trial.form.name, judged, control, fails, counts)
        trial.services.emit(_event(trial, finding))
        yield finding


def _judged(trial: Trial, probe: Probe, control: Control | None) -> Judged:
    """Return what a probe says beside a control; where the site was silent, each more would wait for nothing."""
    if control is not None and control.silent:
        return inconclusive(f"not sent: {control.failed}")
    return with_control(_run(trial, probe), control.failed if control is not None else None)


def _run(trial: Trial, probe: Probe) -> Judged:
    try:
        return probe.run(trial)
    except ScopeDenied:
        raise
    except _NOT_FOUND_OUT as error:
        return inconclusive(error.message)


def _has_control(probe: Probe) -> bool:
    return probe.needs_control and not probe.reads_only


def _stopped(trial: Trial, family: Family, probe: Probe) -> Judged | None:
    """Return why nothing more is sent in this family, None while nothing unexpected was accepted."""
    why = None if probe.reads_only else trial.harm.stopped(family)
    return inconclusive(f"not sent: {why}, and a family stops at its first unexpected effect") if why else None


def _kept_from(trial: Trial, probe: Probe, allowed: Probes) -> Judged | None:
    """Return why a probe is not sent to this form, None if it may be."""
    reason = (None if probe.reads_only else _only_reads(trial)) or _meaningless(trial, probe)
    if reason is None and probe.needs_standin and trial.lab.vendor is None:
        reason = "the vendor's answer cannot be chosen: it needs an account with provider = 'standin'"
    if reason := reason or probe.meaningless(trial):
        return not_applicable(reason)
    left_out = _not_destructive(trial, allowed) if probe.destructive else None
    return replace(not_applicable(f"{left_out}, and {probe.why_destructive}"), left_out=left_out) if left_out else None


def _only_reads(trial: Trial) -> str | None:
    """Return why nothing is sent to the form, None if probes may be."""
    form = trial.form
    if trial.kind is EnvKind.PRODUCTION:
        return "in production only the page is read"
    if not form.verify.via.submits_form:
        return f"the form is verified via {form.verify.via}, so its own submit is not judged"
    if Effect.PAYMENT in form.effects and not form.probes.payment_test_mode:
        return "a success is a payment, and policy.payment_test_mode does not say that it is the vendor's test mode"
    return None


def _meaningless(trial: Trial, probe: Probe) -> str | None:
    """Return why a probe means nothing under the keys of this run (reference/verification.md 2.4)."""
    known = facts(trial.form.type).test_keys
    if trial.key_mode is not KeyMode.TESTKEYS or probe.keys is Keys.ANY:
        return None
    if probe.keys is Keys.REAL_LIFE:
        return "official test keys take their token for ever, so it means nothing with them"
    return (
        "the official test secret takes every text, so it means nothing with it" if known and known.any_token else None
    )


def _not_destructive(trial: Trial, allowed: Probes) -> str | None:
    if not trial.declares_effects:
        return "the form does not say what a success causes (effects)"
    return None if allowed is Probes.ALL else "the proof allows safe probes only (authorise --probes all)"


def _event(trial: Trial, finding: Finding) -> Event:
    """Return the finding as an event; every text is our own sentence, but for names of forms and fields."""
    probe, judged = finding.probe, finding.judged
    data: dict[str, EventValue] = {
        "probe": probe.id,
        "form": finding.form,
        "slug": trial.form.slug,
        "family": str(probe.family),
        "title": probe.title,
        "severity": str(probe.severity),
        "standards": ";".join(probe.standards),
        "safe_behaviour": probe.safe,
        "verdict": str(judged.verdict),
        "reason": judged.reason,
        "exchange": judged.exchange,
        "left_out": judged.left_out,
        "http_status": judged.http_status,
        "control": finding.control,
        "counts": finding.counts,
        "fails": finding.fails,
        "key_mode": str(trial.key_mode),
        "nodeid": trial.nodeid,
    }
    return Event(PROBED, data)
