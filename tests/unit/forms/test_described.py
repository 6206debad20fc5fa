"""Pages without a form whose submit is described: what is sent, where, and what is refused before it is sent."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl

import pytest

from pytest_captcha_qa.errors import (
    AccessNotConfigured,
    ConfigError,
    PageError,
    ScopeDenied,
    TargetUnavailable,
    UnknownName,
)
from pytest_captcha_qa.forms.page import HttpFormDriver
from pytest_captcha_qa.model.answer import Rule
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import CsrfSpec, Encoding, SubmitSpec, VerifySpec, VerifyVia
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Url

PAGE = "https://shop.example/signup"
API = "https://shop.example/api/signup"
TOKEN = "0.c4ptchaqaSANDBOX-token"
SOLUTION = Solution({"token": TOKEN}, user_agent="Solver/1", cookies={"from_solver": "1"})
SPA = """<!doctype html><html><head><meta name="csrf-token" content="from-meta"></head><body>
<div id="app"></div><div class="cf-turnstile" data-sitekey="0x4AAAAAAATESTKEY"></div>
<input type="hidden" name="_token" value="from-field">
<script src="https://challenges.cloudflare.com/turnstile/v0/api.js"></script></body></html>"""
GEETEST = '<div data-gt="0123456789abcdef" data-challenge="fedcba9876543210"></div>'


@pytest.fixture
def open_page(site, grants, spec, deadline):
    """`open_page(submit, page=SPA, ...)` returns the opened page of a form with a described submit."""

    def open_it(submit, page=SPA, kind=CaptchaType.TURNSTILE, **more):
        if page is not None:
            site.page(PAGE, page)
        site.takes(API)
        site.answers[f"PUT {API}"] = site.answers[f"POST {API}"]
        driver = HttpFormDriver(lambda: site)
        return driver.open(spec(kind, submit=submit, **more), Url.parse(PAGE), grants, deadline)

    return open_it


@pytest.fixture
def sent(site, grants, deadline):
    """Submit an opened page and return what reached the site."""

    def submit_it(opened, solution=SOLUTION, **fields):
        opened.submit(solution, fields, grants, deadline)
        return site.asked[-1]

    return submit_it


def graph_ql():
    variables = {"input": {"email": "{identity.email}", "age": 3, "tags": ["a", "b"]}}
    body = {"query": "mutation($input: In!) { signup(input: $input) { ok } }", "variables": variables}
    return SubmitSpec("/api/signup", body=body, token_at={"token": "variables.input.captcha"})


def test_a_graphql_submit_carries_the_token_at_its_path_and_keeps_the_kinds_of_values(open_page, sent):
    asked = sent(open_page(graph_ql()), **{"variables.input.email": "qa@example.com", "variables.input.tags.1": "c"})

    assert (asked.method, asked.url) == ("POST", API)
    assert json.loads(asked.body) == {
        "query": "mutation($input: In!) { signup(input: $input) { ok } }",
        "variables": {"input": {"email": "qa@example.com", "age": 3, "tags": ["a", "c"], "captcha": TOKEN}},
    }
    headers = asked.payload.headers
    assert (headers["Content-Type"], headers["Origin"], headers["Referer"]) == (
        "application/json",
        "https://shop.example",
        PAGE,
    )
    assert headers["Accept"].startswith("application/json")
    assert (asked.payload.user_agent, asked.payload.cookies) == ("Solver/1", {"from_solver": "1"})


def test_a_submit_does_not_change_what_the_next_one_sends(open_page, sent):
    opened = open_page(graph_ql())
    sent(opened, **{"variables.input.email": "first@example.com"})

    body = json.loads(sent(opened, None).body)

    assert body["variables"]["input"] == {"email": "{identity.email}", "age": 3, "tags": ["a", "b"]}


@pytest.mark.parametrize(
    ("more", "name"),
    [({}, "cf-turnstile-response"), ({"token_field": "captchaToken"}, "captchaToken")],
)
def test_without_a_path_the_token_has_the_name_of_its_field(open_page, sent, more, name):
    assert json.loads(sent(open_page(SubmitSpec("/api/signup"), **more)).body) == {name: TOKEN}


def test_fields_may_add_to_the_body_what_it_does_not_list(open_page, sent):
    opened = open_page(SubmitSpec("/api/signup", token_at={"token": "t"}), fields={"user.email": "x"})

    assert json.loads(sent(opened, **{"user.email": "qa@example.com"}).body) == {
        "user": {"email": "qa@example.com"},
        "t": TOKEN,
    }


def test_a_form_body_is_urlencoded_in_the_order_it_is_written(open_page, sent):
    body = {"email": "x", "age": 3, "terms": True}
    asked = sent(
        open_page(SubmitSpec("/api/signup", "PUT", Encoding.FORM, body, {"token": "t"})), email="ä@example.com"
    )

    assert asked.method == "PUT"
    assert parse_qsl(asked.body) == [("email", "ä@example.com"), ("age", "3"), ("terms", "true"), ("t", TOKEN)]


def test_a_multipart_body_carries_fields_and_files(open_page, sent, tmp_path):
    cat = tmp_path / "cat.png"
    cat.write_bytes(b"\x89PNG cat")
    submit = SubmitSpec("/api/signup", encoding=Encoding.MULTIPART, body={"name": "x"}, token_at={"token": "t"})
    payload = sent(open_page(submit, files={"avatar": str(cat)})).payload

    assert payload.headers["Content-Type"].startswith("multipart/form-data; boundary=")
    assert b'name="t"\r\n\r\n' + TOKEN.encode() in payload.body
    assert b'name="avatar"; filename="cat.png"\r\nContent-Type: image/png\r\n\r\n\x89PNG cat\r\n' in payload.body


def test_a_file_that_vanished_is_told_and_nothing_is_sent(open_page, sent, site, tmp_path):
    submit = SubmitSpec("/api/signup", encoding=Encoding.MULTIPART)
    opened = open_page(submit, files={"avatar": str(tmp_path / "gone.png")})

    with pytest.raises(ConfigError, match=r"forms.signup.fields.avatar: .*gone.png cannot be read"):
        sent(opened)
    assert [asked.method for asked in site.asked] == ["GET"]


PARTS = {"challenge": "c1", "validate": "v1", "seccode": "s1"}


@pytest.mark.parametrize(
    ("token_at", "body"),
    [
        ({}, {"geetest_challenge": "c1", "geetest_validate": "v1", "geetest_seccode": "s1"}),
        (
            {"challenge": "captcha.c", "validate": "captcha.v", "seccode": "captcha.s"},
            {"captcha": {"c": "c1", "v": "v1", "s": "s1"}},
        ),
    ],
    ids=["own names", "mapped"],
)
def test_a_solution_of_several_parts_goes_to_its_own_names_or_where_they_are_mapped(open_page, sent, token_at, body):
    opened = open_page(SubmitSpec("/api/signup", token_at=token_at), GEETEST, CaptchaType.GEETEST_V3)

    assert json.loads(sent(opened, Solution(PARTS)).body) == body


def test_a_part_that_the_type_does_not_have_is_told_with_the_nearest(open_page):
    submit = SubmitSpec("/api/signup", token_at={"secode": "x"})

    with pytest.raises(UnknownName, match=r"part of a geetest_v3 solution 'secode' in .*did you mean 'seccode'"):
        open_page(submit, GEETEST, CaptchaType.GEETEST_V3)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ({"cookie": "XSRF-TOKEN"}, "a=b c"),
        ({"meta": "csrf-token"}, "from-meta"),
        ({"field": "_token"}, "from-field"),
    ],
    ids=["cookie", "meta", "field"],
)
def test_the_pages_csrf_value_is_repeated_in_a_header(site, open_page, sent, source, value):
    site.jar["XSRF-TOKEN"] = "a%3Db%20c"
    opened = open_page(SubmitSpec("/api/signup", csrf=CsrfSpec("X-XSRF-TOKEN", **source)))

    assert sent(opened).payload.headers["X-XSRF-TOKEN"] == value


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ({"cookie": "csrf"}, "no cookie 'csrf'"),
        ({"meta": "csrf"}, "no <meta> element .* 'csrf'"),
        ({"field": "csrf"}, "no input .* 'csrf'"),
    ],
)
def test_a_page_without_its_csrf_value_is_broken_before_anything_is_solved(open_page, source, what):
    with pytest.raises(PageError, match=rf"{what}, whose value .* header X-CSRF"):
        open_page(SubmitSpec("/api/signup", csrf=CsrfSpec("X-CSRF", **source)))


def test_a_csrf_value_cannot_smuggle_a_header(site, open_page):
    site.jar["XSRF-TOKEN"] = "a%0d%0aX-Evil:%201"

    with pytest.raises(PageError, match="cannot stand in a header"):
        open_page(SubmitSpec("/api/signup", csrf=CsrfSpec("X-XSRF-TOKEN", cookie="XSRF-TOKEN")))


def test_the_target_needs_a_grant_of_its_own_and_the_page_is_read_only(site, open_page):
    with pytest.raises(ScopeDenied, match=r"https://api.example/signup is not authorised.*forms.signup.submit.url"):
        open_page(SubmitSpec("https://api.example/signup"))
    assert [asked.method for asked in site.asked] == ["GET"]


def test_a_form_that_is_not_submitted_needs_no_target(open_page):
    submit = SubmitSpec("https://api.example/signup", csrf=CsrfSpec("X-CSRF", cookie="none"))
    opened = open_page(submit, verify=VerifySpec(VerifyVia.ENDPOINT, url="/check"))

    assert opened.challenge.sitekey == "0x4AAAAAAATESTKEY"
    assert repr(opened) == "<OpenedDescribedForm /signup turnstile>"


def test_a_value_without_a_place_is_told_with_the_nearest_and_nothing_is_sent(open_page, sent, site):
    opened = open_page(graph_ql())
    opened.check_fields(["variables.input.email"])

    with pytest.raises(UnknownName, match=r"'variables.input.emial' in .*did you mean 'variables.input.email'"):
        opened.check_fields(["variables.input.emial"])
    with pytest.raises(UnknownName, match=r"'variables.input.emial' in .*did you mean 'variables.input.email'"):
        sent(opened, **{"variables.input.emial": "x"})
    assert [asked.method for asked in site.asked] == ["GET"]


def test_no_answer_tells_whether_the_token_can_have_left(site, open_page, sent):
    opened = open_page(graph_ql())
    site.fails(f"POST {API}", sent=False)

    with pytest.raises(TargetUnavailable) as caught:
        sent(opened)
    assert not caught.value.sent


def test_a_page_without_the_widget_and_a_login_are_told_apart(site, open_page):
    with pytest.raises(PageError, match="has no turnstile widget"):
        open_page(graph_ql(), "<div id=app></div>")
    site.redirect(PAGE, "/login")
    site.page("https://shop.example/login", '<form method="post"><input type="password" name="pw"></form>')
    with pytest.raises(AccessNotConfigured, match="leads to a login"):
        open_page(graph_ql(), None)


def test_the_page_after_a_redirect_is_judged_when_the_rule_asks_for_it(site, grants, deadline, open_page):
    opened = open_page(graph_ql(), success=Rule(text="Welcome"))
    site.redirect(API, "/welcome", status=303, method="POST")
    site.page("https://shop.example/welcome", "Welcome!")

    assert opened.submit(SOLUTION, {}, grants, deadline).text == "Welcome!"


def test_a_variants_headers_are_sent_with_page_and_submit(site, open_page, sent):
    opened = open_page(graph_ql(), headers={"Accept-Language": "ru"})
    sent(opened)

    assert [asked.payload.headers["Accept-Language"] for asked in site.asked] == ["ru", "ru"]
