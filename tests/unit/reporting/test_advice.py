"""What to do next: each fault leads somewhere, and what led to it decides where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_captcha_qa.model.attempt import Fault
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.reporting.advice import advice

SENT: dict[str, Any] = {"seconds": {"page": 0.1, "blocked": 1.0, "submit": 0.1}}
LET_THROUGH = SENT | {"outcome": "failed", "fault": "product", "expect": "refuse", "verify_status": "pass"}
PRODUCT = SENT | {"outcome": "failed", "fault": "product", "verify_status": "fail"}
NO_VERDICT = SENT | {"outcome": "indeterminate", "fault": "undetermined", "verify_status": "error"}


@pytest.mark.parametrize(
    ("failed", "words"),
    [
        (LET_THROUGH, "let the backend ask the vendor first"),
        (PRODUCT | {"http_status": 500}, "site's log for the header X-Captcha-QA-Run: nightly-7"),
        (PRODUCT | {"error": {"code": "refused_twice"}}, "compare the backend's secret"),
        (PRODUCT | {"seconds": {"page": 0.1}, "error": {"code": "page_broken"}}, "change forms.signup too"),
        (PRODUCT | {"error": {"code": "verdict"}}, "site's log"),
        (NO_VERDICT | {"error": {"code": "score_observed"}}, "scores differ"),
        (NO_VERDICT | {"error": {"code": "refused_once"}}, "test another form of the type"),
        (NO_VERDICT | {"error": {"code": "refused_twice"}}, "test another form of the type"),
        (NO_VERDICT | {"error": {"code": "verdict"}}, "then correct fields, success, refused of forms.signup"),
        (
            NO_VERDICT | {"fault": "infrastructure", "http_status": 502},
            "where other forms answer, this one is at fault",
        ),
        (NO_VERDICT | {"fault": "infrastructure"}, "see whether the site is up"),
        (NO_VERDICT | {"fault": "provider"}, "see whether the solving service is up"),
    ],
)
def test_it_follows_from_the_fault_and_what_led_to_it(
    attempt: Callable[..., AttemptLine], failed: dict[str, Any], words: str
) -> None:
    assert words in advice(attempt(run_id="nightly-7", **failed))


@pytest.mark.parametrize("fault", Fault)
def test_every_fault_leads_somewhere(attempt: Callable[..., AttemptLine], fault: Fault) -> None:
    said = advice(attempt(outcome="indeterminate", verify_status="error", fault=fault))
    assert said != "see the sentence above"
    assert "{" not in said
