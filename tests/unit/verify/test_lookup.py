"""What is looked up, how often, and when it is believed."""

from __future__ import annotations

import pytest

from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import ScopeDenied, Stopped, TransportError, UnknownName, VerifierError
from pytest_captcha_qa.model.answer import Rule
from pytest_captcha_qa.model.attempt import VerifyStatus
from pytest_captcha_qa.verify.lookup import LookupVerifier

CONTEXT = {"identity.email": "a+b/c@example.com", "run_id": "run 1", "env": "qa"}
LATE = {"success": False}
THERE = {"success": True}


@pytest.fixture
def look_up(client, stop, spec, challenge, grants):
    """Look a submit up; keywords go to the form's `verify`."""

    def look_it_up(seconds=30.0, **verify):
        form = spec(verify={"url": "/api/users?email={identity.email}&run={run_id}", **verify})
        deadline = Deadline(seconds, what="the test")
        return LookupVerifier(client, stop).verify(form, challenge(), None, CONTEXT, grants, deadline)

    return look_it_up


def test_placeholders_are_filled_and_percent_encoded(client, grants, look_up):
    client.will(THERE)

    assert look_up().status is VerifyStatus.PASS
    method, url, grant, payload = client.asked[0]
    assert (method, url) == (
        "GET",
        "https://shop.example/api/users?email=a%2Bb%2Fc%40example.com&run=run%201",
    )
    assert grant is not None
    assert grants.asked == [url]
    assert payload.body is None


@pytest.mark.parametrize(
    ("answers", "status", "reads"),
    [
        ([THERE], VerifyStatus.PASS, 1),
        ([LATE, THERE], VerifyStatus.PASS, 2),
        (["", LATE, LATE, THERE], VerifyStatus.PASS, 4),
        ([LATE, LATE, LATE, LATE, THERE], VerifyStatus.FAIL, 4),
        ([""], VerifyStatus.ERROR, 4),
    ],
)
def test_a_backend_that_writes_late_is_read_again(client, stop, look_up, answers, status, reads):
    client.will(*answers)

    assert look_up().status is status
    assert len(client.asked) == reads
    assert stop.waits == [1.0] * (reads - 1)


def test_a_refusal_with_a_rule_of_its_own_is_final(client, look_up):
    client.will({"captcha": "failed"}, THERE)

    assert look_up(refused=Rule(json={"captcha": "failed"})).status is VerifyStatus.FAIL
    assert len(client.asked) == 1


def test_no_read_begins_when_the_time_is_up(client, look_up):
    client.will(LATE)

    assert look_up(seconds=0.5).status is VerifyStatus.FAIL
    assert len(client.asked) == 1


def test_an_end_that_is_asked_for_ends_the_waiting(client, stop, look_up):
    client.will(LATE)
    stop.set("drained")

    with pytest.raises(Stopped):
        look_up()


def test_an_unknown_placeholder_is_named_with_the_nearest(client, look_up):
    with pytest.raises(UnknownName, match=r"unknown placeholder 'identity\.emial'.*'identity\.email'"):
        look_up(url="/api/{identity.emial}")
    assert client.asked == []


def test_an_address_elsewhere_is_not_read(client, look_up):
    with pytest.raises(ScopeDenied):
        look_up(url="https://elsewhere.example/api")
    assert client.asked == []


def test_no_answer_is_a_verifier_error(client, look_up):
    client.answers.append(TransportError("GET: reset", kind="reset"))

    with pytest.raises(VerifierError, match="the lookup of form 'signup' does not answer"):
        look_up()
