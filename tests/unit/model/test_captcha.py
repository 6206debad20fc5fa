from __future__ import annotations

import pytest

from pytest_captcha_qa.model.captcha import FACTS, Binding, CaptchaType, facts, is_test_sitekey, official_secrets


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


def test_the_types_that_the_site_checks_itself_are_those_without_a_vendors_service() -> None:
    assert {kind for kind, known in FACTS.items() if not known.has_vendor} == {CaptchaType.ALTCHA, CaptchaType.IMAGE}


def test_the_official_test_keys_are_those_the_vendors_publish() -> None:
    keys = {kind: known.test_keys for kind, known in FACTS.items() if known.test_keys}

    assert {kind: set(it.tokens) for kind, it in keys.items()} == {
        CaptchaType.RECAPTCHA_V2: {"6LeIxAcTAAAAAJcZVRqyHh71UMIEGNQ_MXjiZKhI"},
        CaptchaType.TURNSTILE: {
            "1x00000000000000000000AA",
            "1x00000000000000000000BB",
            "3x00000000000000000000FF",
        },
        CaptchaType.HCAPTCHA: {"10000000-ffff-ffff-ffff-000000000001", "20000000-ffff-ffff-ffff-000000000002"},
    }
    assert keys[CaptchaType.TURNSTILE].failing == {"2x00000000000000000000AB", "2x00000000000000000000BB"}
    assert set(keys[CaptchaType.TURNSTILE].tokens.values()) == {"XXXX.DUMMY.TOKEN.XXXX"}
    assert {kind for kind, it in keys.items() if it.any_token} == {CaptchaType.RECAPTCHA_V2}
    assert all(len(token) >= 20 for it in keys.values() for token in it.tokens.values())


def test_a_test_key_is_known_on_a_widget_of_any_type_and_in_any_case() -> None:
    keys = {key for it in FACTS.values() if it.test_keys for key in it.test_keys.sitekeys}

    assert len(keys) == 9
    assert all(is_test_sitekey(written) for key in keys for written in (key, key.upper(), key.lower()))
    assert not any(is_test_sitekey(other) for other in ("", "6LeIxAcTAAAAA", "1x00000000000000000000AC"))


def test_the_official_secrets_are_those_of_all_vendors() -> None:
    assert official_secrets() == {
        "6LeIxAcTAAAAAGG-vFI1TnRWxMZNFuojJ4WifJWe",
        "1x0000000000000000000000000000000AA",
        "2x0000000000000000000000000000000AA",
        "3x0000000000000000000000000000000AA",
        "0x0000000000000000000000000000000000000000",
    }
