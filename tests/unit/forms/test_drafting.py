"""Drafts: what a probe may change of a submit, and what is sent of it."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl

import pytest

from pytest_captcha_qa.errors import ScopeDenied
from pytest_captcha_qa.forms.page import HttpFormDriver
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.draft import Wire
from pytest_captcha_qa.model.form import SubmitSpec
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.transport import Reply

PAGE = "https://shop.example/signup"
SOLUTION = Solution({"token": "0.c4ptchaqaSANDBOX-token"})
FIELD = "cf-turnstile-response"


class Taking(dict):
    """Answers 303 to whatever is no known page."""

    def __missing__(self, key):
        return Reply(303, Url.parse(key.split()[1]), {"Location": "/welcome"})


@pytest.fixture
def opened(site, grants, spec, deadline, html):
    def open_it(**more):
        site.answers = Taking()
        site.page(PAGE, html("turnstile"))
        return HttpFormDriver(lambda: site).open(spec(CaptchaType.TURNSTILE, **more), Url.parse(PAGE), grants, deadline)

    return open_it


@pytest.fixture
def sent(site, grants, deadline):
    """Send a draft and return the request that reached the site."""

    def send(form, draft):
        form.send(draft, grants, deadline)
        return site.asked[-1]

    return send


def test_an_unchanged_draft_is_what_submit_sends(opened, sent, site, grants, deadline):
    form = opened()
    form.submit(SOLUTION, {}, grants, deadline)
    submitted = site.asked[-1]
    drafted = sent(form, form.draft(SOLUTION, {}))
    assert (drafted.method, drafted.url, drafted.body) == (submitted.method, submitted.url, submitted.body)
    assert dict(drafted.payload.headers) == dict(submitted.payload.headers)


def test_edits_of_fields(opened, sent):
    form = opened()
    draft = form.draft(SOLUTION, {})
    bare = parse_qsl(sent(form, draft.without_token()).body, keep_blank_values=True)
    assert FIELD not in dict(bare)
    assert (FIELD, "") in parse_qsl(sent(form, draft.with_token("")).body, keep_blank_values=True)
    twice = parse_qsl(sent(form, draft.before((FIELD, "bad"))).body)
    assert [value for name, value in twice if name == FIELD] == ["bad", SOLUTION.text]
    assert SOLUTION.text not in repr(draft)


def test_edits_of_method_address_and_head(opened, sent):
    form = opened()
    draft = form.draft(None, {})
    asked = sent(form, draft.by("GET").asking(("x", "1")).carrying({"X-Test": "1"}, cookies={"c": "d"}))
    assert (asked.method, asked.body) == ("GET", "")
    assert asked.url.endswith("x=1")
    assert "?" in asked.url
    assert (asked.payload.headers["X-Test"], asked.payload.cookies["c"]) == ("1", "d")
    put = sent(form, draft.by("PUT").at(Url.parse("https://shop.example/other")))
    assert (put.method, put.url) == ("PUT", "https://shop.example/other")


@pytest.mark.parametrize(
    ("wire", "kind"),
    [(Wire.JSON, "application/json"), (Wire.MULTIPART, "multipart/form-data"), (Wire.TEXT, "text/plain")],
)
def test_other_encodings(opened, sent, wire, kind):
    form = opened()
    asked = sent(form, form.draft(SOLUTION, {}).sent_as(wire))
    assert asked.payload.headers["Content-Type"].startswith(kind)
    assert SOLUTION.text in asked.body


def test_a_draft_for_an_address_that_is_not_granted_is_not_sent(opened, site, grants, deadline):
    form = opened()
    before = len(site.asked)
    with pytest.raises(ScopeDenied):
        form.send(form.draft(SOLUTION, {}).at(Url.parse("https://elsewhere.example/")), grants, deadline)
    assert len(site.asked) == before


def test_a_described_submit_keeps_its_nesting_and_takes_any_json_as_token(opened, sent):
    submit = SubmitSpec("/api", body={"data": {"n": 1}, "captcha": {"token": "?"}}, token_at={"token": "captcha.token"})
    form = opened(submit=submit)
    draft = form.draft(SOLUTION, {})
    assert json.loads(sent(form, draft).body) == {"data": {"n": 1}, "captcha": {"token": SOLUTION.text}}
    assert json.loads(sent(form, draft.without_token()).body) == {"data": {"n": 1}, "captcha": {}}
    assert json.loads(sent(form, draft.with_token(["x"])).body)["captcha"] == {"token": ["x"]}
    flat = parse_qsl(sent(form, draft.without_token().sent_as(Wire.FORM)).body)
    assert flat == [("data.n", "1")]
