"""Image captchas: the form takes what the image shows, once, and nothing else."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.captcha(types=["image"])

# A made-up answer of a usual length.
GARBAGE = "w7k2p9"


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
