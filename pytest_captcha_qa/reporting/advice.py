"""What the reader of a failed attempt does next, in one sentence: by the fault, and by what led to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_captcha_qa.model.attempt import (
    GATEWAY_STATUSES,
    REFUSED_ONCE,
    REFUSED_TWICE,
    SCORE_OBSERVED,
    Expect,
    Fault,
    VerifyStatus,
)
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.reporting.codes import fault_of

_Applies = Callable[[AttemptLine], bool]


def advice(attempt: AttemptLine) -> str:
    """Return the first advice of the table that applies to a failed attempt; it quotes nothing of the site."""
    fault = fault_of(attempt)
    found = next((said for of, applies, said in _TABLE if of is fault and applies(attempt)), _OTHERWISE)
    return found.format(form=attempt.slug, run=attempt.run_id)


def _always(attempt: AttemptLine) -> bool:
    return True


def _let_through(attempt: AttemptLine) -> bool:
    return attempt.expect == Expect.REFUSE and attempt.verify_status == VerifyStatus.PASS


def _crashed(attempt: AttemptLine) -> bool:
    return attempt.http_status is not None and attempt.http_status >= 500


def _met_a_gateway(attempt: AttemptLine) -> bool:
    return attempt.http_status in GATEWAY_STATUSES


def _coded(*codes: str) -> _Applies:
    return lambda attempt: attempt.error is not None and attempt.error.get("code") in codes


def _on_the_page(attempt: AttemptLine) -> bool:
    return "blocked" not in attempt.seconds and "submit" not in attempt.seconds


_OTHERWISE = "see the sentence above"
_IN_THE_LOG = "look into the site's log for the header X-Captcha-QA-Run: {run}"
_AGAIN = "then run again; nothing is known of the form"
_TABLE: Sequence[tuple[Fault, _Applies, str]] = (
    (
        Fault.PRODUCT,
        _let_through,
        "let the backend ask the vendor first, and refuse what the vendor refuses",
    ),
    (Fault.PRODUCT, _crashed, _IN_THE_LOG),
    (
        Fault.PRODUCT,
        _coded(REFUSED_TWICE),
        "compare the backend's secret and vendor address with the page's sitekey; its log has what the vendor answered",
    ),
    (
        Fault.PRODUCT,
        _on_the_page,
        "open the page; if it was changed on purpose, change forms.{form} too",
    ),
    (Fault.PRODUCT, _always, _IN_THE_LOG),
    (Fault.UNDETERMINED, _coded(SCORE_OBSERVED), "compare with other runs: scores differ from solve to solve"),
    (
        Fault.UNDETERMINED,
        _coded(REFUSED_ONCE, REFUSED_TWICE),
        "test another form of the type in the same run, which tells whether the tokens are good",
    ),
    (
        Fault.UNDETERMINED,
        _always,
        "read fields and answer in the evidence's exchange.json; then correct fields, success, refused of forms.{form}",
    ),
    (
        Fault.INFRASTRUCTURE,
        _met_a_gateway,
        "see the summary of the run: where other forms answer, this one is at fault; else the site is down",
    ),
    (Fault.INFRASTRUCTURE, _always, f"see whether the site is up, {_AGAIN}"),
    (Fault.PROVIDER, _always, f"see whether the solving service is up and paid, {_AGAIN}"),
    (Fault.CONFIG, _always, f"correct what the sentence above names, {_AGAIN}"),
    (Fault.SCOPE, _always, f"correct what the sentence above names, {_AGAIN}"),
)
