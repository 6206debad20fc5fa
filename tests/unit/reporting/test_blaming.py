"""What only the other forms of a run can tell, row by row; the order of the attempts never matters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_captcha_qa.reporting.blaming import settled
from pytest_captcha_qa.reporting.causes import Cause, Session
from pytest_captcha_qa.reporting.forms import FormState
from pytest_captcha_qa.reporting.verdict import decide

TWICE: Mapping[str, Any] = {
    "outcome": "indeterminate", "verify_status": "fail", "fault": "undetermined", "http_status": 422,
    "error": {"code": "refused_twice", "message": "the site refused a fresh token, and a second one too"},
}  # fmt: skip
ONCE = {**TWICE, "error": {"code": "refused_once", "message": "the site refused a fresh token"}}
GATEWAY: Mapping[str, Any] = {
    "outcome": "indeterminate", "verify_status": "error", "fault": "infrastructure", "http_status": 502,
    "error": {"code": "verdict", "message": "a gateway answered 502 in the site's place"},
}  # fmt: skip
UNREACHED = {**GATEWAY, "verify_status": "skipped", "http_status": None, "error": {"code": "target_unavailable"}}
LIMITED = {**UNREACHED, "http_status": 429}
CRASH = {**GATEWAY, "outcome": "failed", "fault": "product", "http_status": 500}
UNSOLVED = {"outcome": "indeterminate", "verify_status": "skipped", "fault": "provider", "http_status": None}
OTHER = {"slug": "login", "nodeid": "t.py::test_login"}
THIRD = {"slug": "order", "nodeid": "t.py::test_order"}

Row = tuple[Mapping[str, Any], list[dict[str, Any]], str]

# What the form `signup` met, what else the run recorded, and whose fault it is in the end.
CONTROLS: list[Row] = [
    (TWICE, [], "undetermined"),
    (TWICE, [OTHER], "product"),
    (TWICE, [{}], "undetermined"),  # the form itself is no control
    (TWICE, [{**OTHER, "captcha": "recaptcha_v2"}], "undetermined"),
    (TWICE, [{**OTHER, "provider": "capskip"}], "undetermined"),
    (TWICE, [{**OTHER, "account": "spare"}], "undetermined"),
    (TWICE, [{**OTHER, "key_mode": "testkeys"}], "undetermined"),
    (TWICE, [{**OTHER, "expect": "refuse"}], "undetermined"),
    (TWICE, [{**OTHER, **TWICE}], "undetermined"),
    (TWICE, [{**OTHER, **TWICE}, THIRD], "product"),
    (ONCE, [OTHER], "undetermined"),
]
GATEWAYS: list[Row] = [
    (GATEWAY, [], "infrastructure"),
    (GATEWAY, [OTHER], "product"),
    (GATEWAY, [{**OTHER, **TWICE}], "product"),
    (GATEWAY, [{**OTHER, **CRASH}], "product"),
    (GATEWAY, [{**OTHER, **GATEWAY}], "infrastructure"),
    (GATEWAY, [{**OTHER, **GATEWAY}, THIRD], "infrastructure"),
    (GATEWAY, [OTHER, THIRD], "product"),
    (GATEWAY, [{}, OTHER], "infrastructure"),  # the form has answered before or after
    (GATEWAY, [{**OTHER, **UNSOLVED}], "infrastructure"),
    (UNREACHED, [OTHER, THIRD], "infrastructure"),
    (LIMITED, [OTHER, THIRD], "infrastructure"),
]


@pytest.mark.parametrize("turned", [False, True], ids=["first", "last"])
@pytest.mark.parametrize(("met", "others", "fault"), CONTROLS + GATEWAYS)
def test_the_rest_of_the_run_decides(
    attempt: Any, met: Mapping[str, Any], others: list[dict[str, Any]], fault: str, turned: bool
) -> None:
    lines = [attempt(**met), *(attempt(**other) for other in others)]

    known = settled(lines[::-1] if turned else lines)

    [found] = [line for line in known if line.id == lines[0].id]
    assert found.fault == fault
    assert (found.outcome == "failed") is (fault == "product")


def test_what_is_not_in_doubt_stays_as_it_is(attempt: Any) -> None:
    lines = [attempt(), attempt(**OTHER), attempt(**THIRD, **CRASH), attempt(**UNSOLVED)]

    assert list(settled(lines)) == lines


def test_the_reason_says_who_vouches_for_the_tokens(attempt: Any) -> None:
    [found, _] = settled([attempt(**TWICE), attempt(**OTHER)])

    assert found.error is not None
    assert found.error["code"] == "refused_twice"
    assert found.error["message"].endswith(
        "and a second one too; form 'login' of the same type has accepted a token of the same provider, "
        "so the form is at fault"
    )


@pytest.mark.parametrize("met", [TWICE, GATEWAY], ids=["refused", "gateway"])
def test_the_verdict_and_its_exit_code_follow(attempt: Any, run: Any, met: Mapping[str, Any]) -> None:
    nodeid = "t.py::test_signup"
    session = Session(
        pytest_exit=1, causes=[Cause(12, "no verdict", nodeid)], selected_forms=["login", "signup"], captcha_tests=2,
        environment="staging", tests_failed=1,
    )  # fmt: skip

    verdict = decide(session, run(attempt(**met, nodeid=nodeid), attempt(**OTHER)))

    assert verdict.exit == 1
    assert [reasons.code for reasons in verdict.codes] == [1]
    assert "so the form is at fault" in verdict.sentence
    states = {form.slug: (form.state, form.fault) for form in verdict.forms}
    assert states == {"login": (FormState.OK, None), "signup": (FormState.FAILED, "product")}


def test_without_a_control_the_run_ends_without_a_verdict(attempt: Any, run: Any) -> None:
    nodeid = "t.py::test_signup"
    session = Session(
        pytest_exit=1, causes=[Cause(12, "no verdict", nodeid)], selected_forms=["signup"], captcha_tests=1,
        environment="staging", tests_failed=1,
    )  # fmt: skip

    verdict = decide(session, run(attempt(**TWICE, nodeid=nodeid)))

    assert verdict.exit == 12
    assert [form.fault for form in verdict.forms] == ["undetermined"]
