from __future__ import annotations

import pytest

from pytest_captcha_qa.model.captcha import FACTS, Binding, CaptchaType, facts


def test_every_type_has_its_facts() -> None:
    assert set(FACTS) == set(CaptchaType)


@pytest.mark.parametrize("kind", CaptchaType)
def test_the_facts_of_a_type_fit_together(kind: CaptchaType) -> None:
    known = facts(kind)

    assert 0 < known.margin < known.ttl
    assert 0 < known.expected < known.solve_deadline
    assert known.expected <= known.drain <= known.solve_deadline


def test_a_recaptcha_token_is_kept_for_110_of_its_120_seconds() -> None:
    assert facts(CaptchaType.RECAPTCHA_V2).keep == 110  # R1.5


def test_the_types_whose_token_belongs_to_one_load_of_the_page() -> None:
    bound = {kind for kind, known in FACTS.items() if known.binding is Binding.PAGE}

    assert bound == {CaptchaType.GEETEST_V3, CaptchaType.ALTCHA, CaptchaType.IMAGE}


def test_the_official_test_keys_are_those_the_vendors_publish() -> None:
    keys = {kind: known.test_keys.sitekey for kind, known in FACTS.items() if known.test_keys}

    assert keys == {
        CaptchaType.RECAPTCHA_V2: "6LeIxAcTAAAAAJcZVRqyHh71UMIEGNQ_MXjiZKhI",
        CaptchaType.TURNSTILE: "1x00000000000000000000AA",
        CaptchaType.HCAPTCHA: "10000000-ffff-ffff-ffff-000000000001",
    }
