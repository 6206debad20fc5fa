"""Which policies block a widget."""

from __future__ import annotations

import pytest

from pytest_captcha_qa.conformance.csp import blocked
from pytest_captcha_qa.model.captcha import CaptchaType

PAGE = "https://shop.example/signup"
OPEN = "script-src https://challenges.cloudflare.com; frame-src https://challenges.cloudflare.com"


@pytest.mark.parametrize(
    ("policy", "directives"),
    [
        ("", []),
        ("img-src 'none'", []),
        (OPEN, []),
        ("default-src 'self'", ["script-src", "frame-src"]),
        ("default-src https:", []),
        ("default-src *", []),
        ("default-src 'self'; script-src *.cloudflare.com; child-src challenges.cloudflare.com", []),
        ("script-src 'nonce-abc'; frame-src 'self'", ["frame-src"]),
        ("script-src challenges.cloudflare.com:8443; frame-src *", ["script-src"]),
        ("script-src *.example.com; frame-src *", ["script-src"]),
    ],
)
def test_a_policy_blocks_what_it_does_not_name(policy, directives):
    found = blocked(policy, CaptchaType.TURNSTILE, PAGE)
    assert [one.split()[0] for one in found] == directives


def test_the_first_of_two_directives_of_a_name_counts():
    assert blocked(f"{OPEN}; script-src 'none'", CaptchaType.TURNSTILE, PAGE) == []


@pytest.mark.parametrize(("path", "fits"), [("/recaptcha/", True), ("/maps/", False), ("", True)])
def test_a_path_narrows_a_source(path, fits):
    policy = f"script-src https://www.google.com{path} https://www.gstatic.com; frame-src *"
    assert (blocked(policy, CaptchaType.RECAPTCHA_V2, PAGE) == []) is fits


def test_a_type_without_documented_needs_is_never_blocked():
    assert blocked("default-src 'none'", CaptchaType.GEETEST_V4, PAGE) == []
