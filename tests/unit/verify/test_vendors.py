"""What the table says of each vendor, for those who ask it about types instead of keeping lists of them."""

from __future__ import annotations

import pytest

from pytest_captcha_qa.model.captcha import CaptchaType, facts
from pytest_captcha_qa.verify.vendors import VENDORS

SCORED = {CaptchaType.RECAPTCHA_V3, CaptchaType.RECAPTCHA_ENTERPRISE}
GEETEST = {CaptchaType.GEETEST_V3, CaptchaType.GEETEST_V4}
VERIFIED = {kind for kind, shape in VENDORS.items() if shape is not None}


def test_a_type_has_a_vendor_in_both_tables_or_in_none() -> None:
    assert {kind for kind in CaptchaType if facts(kind).has_vendor} == VERIFIED


@pytest.mark.parametrize(
    ("fact", "kinds"),
    [
        ("scored", SCORED),
        ("binds_action", SCORED),
        ("risk", {CaptchaType.HCAPTCHA}),
        ("names_host", VERIFIED - GEETEST - {CaptchaType.FRIENDLY_V2}),  # whose origin may be empty
        ("says_success", VERIFIED - GEETEST - {CaptchaType.RECAPTCHA_ENTERPRISE}),
        ("keeps_status", {CaptchaType.GEETEST_V3}),
    ],
)
def test_what_the_answers_of_vendors_hold(fact: str, kinds: set[CaptchaType]) -> None:
    assert {kind for kind, shape in VENDORS.items() if shape is not None and getattr(shape, fact)} == kinds
