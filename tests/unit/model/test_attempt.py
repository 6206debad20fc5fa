from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_captcha_qa.model.attempt import (
    AttemptKey,
    Expect,
    Fault,
    Fingerprint,
    Outcome,
    Result,
    Verdict,
    VerifyStatus,
)
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.url import Url

# Few letters, and those that separators could be made of, so that parts often run into each other.
_parts = st.text("a:,0123\x00", max_size=4)
_keys = st.builds(
    AttemptKey,
    project=_parts,
    account=_parts,
    env=_parts,
    origin=_parts,
    form=_parts,
    boundary=_parts,
    subject=_parts,
    ordinal=st.integers(1, 20),
)
CHALLENGE = Challenge(CaptchaType.GEETEST_V3, "gt", Url.parse("https://shop.example/a"), data={"challenge": "1"})


@given(_keys, _keys)
def test_two_keys_have_one_digest_exactly_when_they_are_equal(one: AttemptKey, other: AttemptKey) -> None:
    assert (one.digest == other.digest) == (one == other)


@given(_keys, st.sampled_from([field.name for field in dataclasses.fields(AttemptKey)]))
def test_every_part_of_a_key_counts(key: AttemptKey, part: str) -> None:
    value = getattr(key, part)
    other: Any = value + 1 if isinstance(value, int) else value + "a"
    changed = dataclasses.replace(key, **{part: other})

    assert changed.digest != key.digest


@given(st.text(min_size=8, max_size=40))
def test_nothing_personal_stands_in_a_digest(subject: str) -> None:
    digest = AttemptKey("p", "a", "e", "o", "f", "b", subject).digest

    assert re.fullmatch("[0-9a-f]{64}", digest)


def test_a_subject_that_is_no_valid_text_still_has_a_key() -> None:
    halves = [AttemptKey("p", "a", "e", "o", "f", "b", subject).digest for subject in ("\ud800", "\udfff")]

    assert halves[0] != halves[1]


@pytest.mark.parametrize(
    "change",
    [
        {"type": CaptchaType.TURNSTILE},
        {"sitekey": "other"},
        {"page": Url.parse("https://shop.example/b")},
        {"action": "login"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_fingerprint_tells_type_sitekey_page_and_action_apart(change: dict[str, object]) -> None:
    other = dataclasses.replace(CHALLENGE, **change)  # type: ignore[arg-type]

    assert Fingerprint.of(other, page_bound=True).digest != Fingerprint.of(CHALLENGE, page_bound=True).digest


def test_another_query_is_the_same_page() -> None:
    other = dataclasses.replace(CHALLENGE, page=CHALLENGE.page.join("?utm=1"))

    assert Fingerprint.of(other, page_bound=False) == Fingerprint.of(CHALLENGE, page_bound=False)


def test_only_a_page_bound_type_tells_loads_of_a_page_apart() -> None:
    reloaded = dataclasses.replace(CHALLENGE, data={"challenge": "2"})

    assert Fingerprint.of(reloaded, page_bound=False) == Fingerprint.of(CHALLENGE, page_bound=False)
    one, two = (Fingerprint.of(it, page_bound=True) for it in (CHALLENGE, reloaded))
    assert one.digest == two.digest
    assert one.page != two.page


@pytest.mark.parametrize(("one", "other"), [({"a": "b=c"}, {"a=b": "c"}), ({"a": "b\x00c"}, {"a": "b", "c": ""})])
def test_page_data_cannot_pose_as_other_data(one: dict[str, str], other: dict[str, str]) -> None:
    prints = [Fingerprint.of(dataclasses.replace(CHALLENGE, data=it), page_bound=True) for it in (one, other)]

    assert prints[0] != prints[1]


@pytest.mark.parametrize("status", VerifyStatus)
def test_a_verdict_is_true_when_the_backend_said_pass(status: VerifyStatus) -> None:
    assert bool(Verdict(status, "why")) is (status is VerifyStatus.PASS)


@pytest.mark.parametrize("result", Result)
def test_an_outcome_is_true_when_the_expectation_was_met(result: Result) -> None:
    outcome = Outcome(result, Verdict(VerifyStatus.FAIL, "refused (422)"), Expect.REFUSE)

    assert bool(outcome) is outcome.ok is (result is Result.OK)


def test_an_outcome_is_shown_as_a_sentence_with_the_fault() -> None:
    verdict = Verdict(VerifyStatus.FAIL, "the site refused a fresh token")

    assert str(Outcome(Result.FAILED, verdict, fault=Fault.PRODUCT)) == (
        "failed: the site refused a fresh token (fault product)"
    )
    assert str(Outcome(Result.OK, Verdict(VerifyStatus.PASS, "accepted (303)"))) == "ok: accepted (303)"
