"""Run by test_suites.py in the demo: the sandbox's vendor answers as a test says."""

from __future__ import annotations


def test_a_low_score_is_refused(captcha_form, captcha_standin):
    page = captcha_form("contact")
    token = captcha_standin.token(page, score=0.1)
    assert page.submit(token=token, expect="refuse")
    (call,) = (it for it in captcha_standin.calls() if it["vendor"] == "recaptcha")
    assert (call["accepted"], call["scripted"]) == (True, True)


def test_an_old_token_is_refused(captcha_form, captcha_standin):
    page = captcha_form("login")
    assert page.submit(token=captcha_standin.token(page, age=301), expect="refuse")
