"""ALTCHA: the form takes a payload that solves its own challenge, once, and nothing else."""

from __future__ import annotations

from base64 import b64encode

import pytest

pytestmark = pytest.mark.captcha(types=["altcha"])

# A payload of the right shape for a challenge that the site never signed.
GARBAGE = b64encode(
    b'{"algorithm":"SHA-256","challenge":"%s","number":17,"salt":"f00d?expires=4102444800","signature":"%s"}'
    % (b"0123456789abcdef" * 4, b"fedcba9876543210" * 4)
).decode()


def test_a_valid_token_passes(captcha_form_name, captcha_form, captcha_token):
    outcome = captcha_form(captcha_form_name).submit(token=captcha_token(captcha_form_name))
    assert outcome, outcome


def test_a_missing_token_is_refused(captcha_form_name, captcha_form):
    outcome = captcha_form(captcha_form_name).submit(token=None, expect="refuse")
    assert outcome, outcome


def test_an_empty_token_is_refused(captcha_form_name, captcha_form):
    outcome = captcha_form(captcha_form_name).submit(token="", expect="refuse")
    assert outcome, outcome


def test_a_made_up_token_is_refused(captcha_form_name, captcha_form):
    outcome = captcha_form(captcha_form_name).submit(token=GARBAGE, expect="refuse")
    assert outcome, outcome


def test_a_used_token_is_refused(captcha_form_name, captcha_form, captcha_token):
    token = captcha_token(captcha_form_name)
    assert captcha_form(captcha_form_name).submit(token=token)
    outcome = captcha_form(captcha_form_name).submit(token=token, expect="refuse")
    assert outcome, outcome
