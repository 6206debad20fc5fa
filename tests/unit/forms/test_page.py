"""Opening and submitting a form: what is sent where, what is followed, what is refused before it is sent."""

from __future__ import annotations

import time
from types import SimpleNamespace
from urllib.parse import parse_qs, parse_qsl

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
from pytest_captcha_qa.forms.sending import token_values
from pytest_captcha_qa.model.answer import Rule
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import EnvKind, VerifySpec, VerifyVia
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.scope import Evidence, OriginPattern, ScopeRules, TokenSource, check

PAGE = "https://shop.example/signup"
SOLUTION = Solution({"token": "0.c4ptchaqaSANDBOX-token"})


@pytest.fixture
def open_form(site, grants, spec, deadline, html):
    """Return the opened form of a fixture page."""

    def open_it(page="turnstile", kind=CaptchaType.TURNSTILE, url=PAGE, **more):
        if page is not None:
            site.page(PAGE, html(page))
        return HttpFormDriver(lambda: site).open(spec(kind, **more), Url.parse(url), grants, deadline)

    return open_it


@pytest.fixture
def submit(site, grants, deadline):
    """Submit an opened form and return the answer and the fields that were sent."""

    def submit_it(opened, solution=SOLUTION, **fields):
        answer = opened.submit(solution, fields, grants, deadline)
        posts = [asked for asked in site.asked if asked.method == "POST"]
        return answer, parse_qsl(posts[-1].body, keep_blank_values=True) if posts else []

    return submit_it


# -- opening


def test_production_with_a_test_key_is_a_broken_page(site, spec, html, deadline):
    url = Url.parse(PAGE)
    key = "1x00000000000000000000AA"
    site.page(PAGE, html("turnstile").replace("0x4AAAAAAASANDBOXlogin01", key))
    opened = {}
    for kind in (EnvKind.STAGING, EnvKind.PRODUCTION):
        pattern = OriginPattern(url.origin)
        rules = ScopeRules("x", kind, (pattern,), TokenSource.LIVE, frozenset({"shop.example"}), budgeted=True)
        proof = Evidence(url.origin, time.monotonic(), (pattern,), kind, time.time() + 999)
        granted = SimpleNamespace(grant=lambda url, rules=rules, proof=proof: check(url, rules, proof))
        opened[kind] = lambda granted=granted: HttpFormDriver(lambda: site).open(spec(), url, granted, deadline)

    assert opened[EnvKind.STAGING]().challenge.sitekey == key
    with pytest.raises(PageError, match=f"is production and shows the official test key {key}"):
        opened[EnvKind.PRODUCTION]()


def test_an_opened_form_tells_its_challenge_and_prints_nothing_else(open_form):
    opened = open_form()

    assert (opened.challenge.type, opened.challenge.action) == (CaptchaType.TURNSTILE, "login")
    assert str(opened.page) == PAGE
    assert repr(opened) == "<OpenedHtmlForm /signup turnstile>"


def test_each_opened_form_gets_its_own_client(site, grants, spec, deadline, html):
    made = []
    site.page(PAGE, html("turnstile"))
    driver = HttpFormDriver(lambda: made.append(1) or site)

    driver.open(spec(), Url.parse(PAGE), grants, deadline)
    driver.open(spec(), Url.parse(PAGE), grants, deadline)

    assert len(made) == 2


@pytest.mark.parametrize("name", ["windows_1251", "utf_16"])
def test_a_page_in_another_character_set_is_read(site, raw, open_form, submit, name):
    site.page(PAGE, raw(name))
    site.takes(PAGE, status=303)
    opened = open_form(page=None)
    submit(opened, email="qa@example.com")

    charset = {"windows_1251": "cp1251", "utf_16": "utf-8"}[name]
    sent = parse_qs(site.asked[-1].body, encoding=charset)
    assert sent["имя"] == ["Пример"]


def test_redirects_are_followed_while_they_are_granted(site, grants, html, open_form):
    site.redirect("https://shop.example/start", "/en/start", status=301)
    site.redirect("https://shop.example/en/start", PAGE, status=307)
    site.page(PAGE, html("turnstile"))

    opened = open_form(page=None, url="https://shop.example/start")

    assert str(opened.page) == PAGE
    assert grants.asked[:3] == ["https://shop.example/start", "https://shop.example/en/start", PAGE]


def test_an_immediate_meta_refresh_is_followed_and_a_late_one_is_not(site, html, open_form):
    site.page(PAGE, html("meta_refresh"))
    site.page(f"{PAGE}/new?x=1&y=2", html("meta_refresh_later"))

    assert str(open_form(page=None).page) == f"{PAGE}/new?x=1&y=2"


def test_the_sixth_redirect_is_one_too_many(site, open_form):
    for number in range(7):
        site.redirect(f"https://shop.example/{number}", f"/{number + 1}")

    with pytest.raises(PageError, match="after 5 redirects"):
        open_form(page=None, url="https://shop.example/0")
    assert len(site.asked) == 6


@pytest.mark.parametrize(
    ("location", "words"),
    [
        (
            "https://login.example/sso",
            "https://login.example/sso is not authorised, and nothing was sent to it",
        ),
        ("//elsewhere.example", "https://shop.example/signup redirects to it"),
        ("https://user@shop.example/", "is refused: it holds user info"),
        ("javascript:alert(1)", "is refused"),
        ("https://[::1", "is refused"),
    ],
)
def test_a_redirect_that_is_not_authorised_gets_nothing(site, open_form, location, words):
    site.redirect(PAGE, location)

    with pytest.raises(ScopeDenied, match=words.replace("[", "\\[")):
        open_form(page=None)
    assert [asked.url for asked in site.asked] == [PAGE]


def test_a_page_that_is_not_authorised_is_not_asked(site, open_form):
    with pytest.raises(ScopeDenied):
        open_form(page=None, url="https://elsewhere.example/signup")
    assert site.asked == []


@pytest.mark.parametrize("page", ["base_off_origin", "action_protocol_relative"])
def test_a_base_or_an_action_elsewhere_is_refused_before_a_solve_is_paid(open_form, page):
    with pytest.raises(ScopeDenied, match=r"elsewhere.example") as caught:
        open_form(page)
    assert caught.value.reason == "origin_not_listed"


def test_a_form_that_is_not_submitted_may_have_any_action(open_form):
    via = VerifySpec(via=VerifyVia.SITEVERIFY)

    assert open_form("action_javascript", verify=via, fields={"absent": "x"}).challenge.sitekey


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (401, AccessNotConfigured, "answers 401: it wants a login"),
        (403, AccessNotConfigured, "answers 403"),
        (404, PageError, "https://shop.example/signup answers 404"),
        (500, PageError, "answers 500"),
        (204, PageError, "answers 204"),
        (304, PageError, "answers 304"),
        (302, PageError, "answers 302 without saying where to go"),
        (429, TargetUnavailable, "answers 429"),
        (502, TargetUnavailable, "answers 502"),
        (503, TargetUnavailable, "answers 503"),
        (504, TargetUnavailable, "answers 504"),
    ],
)
def test_a_status_in_place_of_the_page_is_told_apart(site, open_form, status, error, words):
    site.page(PAGE, "<h1>no</h1>", status=status)

    with pytest.raises(error, match=words) as caught:
        open_form(page=None)
    assert getattr(caught.value, "status", status) == status


def test_an_answer_that_is_no_html_is_named(site, open_form):
    site.page(PAGE, "{}", content_type="application/json")

    with pytest.raises(PageError, match="'application/json', which is no HTML page"):
        open_form(page=None)


@pytest.mark.parametrize(("kind", "error"), [("too_large", PageError), ("refused", TargetUnavailable)])
def test_a_transport_fault_on_the_page_becomes_ours(site, open_form, kind, error):
    site.fails(f"GET {PAGE}", kind=kind)

    with pytest.raises(error, match=PAGE):
        open_form(page=None)


@pytest.mark.parametrize("page", ["login", "turnstile"])
def test_a_redirect_to_a_login_is_access_that_is_not_configured(site, html, open_form, page):
    site.redirect(PAGE, "/login?next=/signup")
    site.page("https://shop.example/login?next=/signup", html(page))

    with pytest.raises(AccessNotConfigured, match=r"leads to a login.*https://shop.example/login"):
        open_form(page=None, fields={"email": "x", "phone": "x"})


def test_a_configured_field_the_form_does_not_have_is_named_with_the_nearest(open_form):
    with pytest.raises(UnknownName, match=r"unknown form field 'emial'.*did you mean 'email'"):
        open_form(fields={"emial": "x"})


# -- submitting


def test_a_submit_carries_hidden_fields_given_fields_token_and_button(site, open_form, submit):
    site.takes(PAGE, status=303)
    _, sent = submit(open_form(), email="qa@example.com", name="Q A")

    assert sent == [
        ("csrf_token", "of-the-signup"),
        ("email", "qa@example.com"),
        ("name", "Q A"),
        ("password", ""),
        ("go", "1"),
        ("cf-turnstile-response", "0.c4ptchaqaSANDBOX-token"),
    ]


def test_a_submit_looks_like_the_browsers(site, open_form, submit):
    site.takes(PAGE, status=303)
    submit(open_form())
    headers = site.asked[-1].payload.headers

    assert headers["Referer"] == PAGE
    assert headers["Origin"] == "https://shop.example"
    assert headers["Accept"].startswith("text/html")


def test_a_get_form_is_sent_in_its_query_without_an_origin_header(site, open_form, submit):
    opened = open_form("get_form")
    query = "csrf_token=of-the-signup&email=&name=&password=&go=1&cf-turnstile-response=x"
    site.page(f"{PAGE}?{query}", "Thanks")
    answer, _ = submit(opened, Solution({"token": "x"}))

    assert answer.text == "Thanks"
    assert "Origin" not in site.asked[-1].payload.headers


def test_another_granted_origin_learns_the_origin_of_the_page_only(site, grants, html, spec, deadline, submit):
    grants.origins = grants.origins | {Url.parse("https://elsewhere.example").origin}
    site.page(PAGE, html("action_protocol_relative"))
    site.takes("https://elsewhere.example/signup", status=303)
    opened = HttpFormDriver(lambda: site).open(spec(), Url.parse(PAGE), grants, deadline)
    submit(opened)

    assert site.asked[-1].payload.headers["Referer"] == "https://shop.example/"
    assert "https://elsewhere.example/signup" in grants.asked


def test_user_agent_and_cookies_of_the_solution_go_along(site, open_form, submit):
    site.takes(PAGE, status=303)
    submit(open_form(), Solution({"token": "x"}, user_agent="Solver/1", cookies={"cf": "1"}))
    payload = site.asked[-1].payload

    assert (payload.user_agent, dict(payload.cookies)) == ("Solver/1", {"cf": "1"})


@pytest.mark.parametrize(
    ("page", "kind", "absent"),
    [
        ("recaptcha_v3_script", CaptchaType.RECAPTCHA_V3, ["g-recaptcha-response"]),
        (
            "geetest_v3_data",
            CaptchaType.GEETEST_V3,
            ["geetest_challenge", "geetest_validate", "geetest_seccode"],
        ),
    ],
)
def test_without_a_solution_the_token_fields_are_left_out(site, open_form, submit, page, kind, absent):
    site.takes(PAGE)
    _, sent = submit(open_form(page, kind), None)

    assert not set(absent) & {name for name, _ in sent}
    assert ("csrf_token", "of-the-signup") in sent


def test_hidden_token_inputs_of_the_page_are_sent_once(site, open_form, submit):
    site.takes(PAGE)
    parts = {"challenge": "c1", "validate": "v1", "seccode": "v1|jordan"}
    _, sent = submit(open_form("geetest_v3_data", CaptchaType.GEETEST_V3), Solution(parts))

    assert [pair for pair in sent if pair[0].startswith("geetest_")] == [
        ("geetest_challenge", "c1"),
        ("geetest_validate", "v1"),
        ("geetest_seccode", "v1|jordan"),
    ]


@pytest.mark.parametrize(
    ("parts", "values"),
    [
        ({"token": "any text"}, {"a": "any text", "b": "any text"}),
        ({"x": "1", "y": "2"}, {"a": "1", "b": "2"}),
        ({"x": "1"}, {"a": "1"}),
        ({}, {"a": "", "b": ""}),
    ],
)
def test_any_text_can_be_sent_in_place_of_a_solution(parts, values):
    assert token_values(Solution(parts), {"a": "x", "b": "y"}) == values


@pytest.mark.parametrize("name", ["emial", "cf-turnstile-response", "in_another_form"])
def test_a_field_the_form_does_not_have_sends_nothing(site, open_form, submit, name):
    opened = open_form()
    opened.check_fields(["csrf_token", "email", "name"])

    with pytest.raises(UnknownName, match=f"unknown form field '{name}'"):
        opened.check_fields(["email", name])
    with pytest.raises(UnknownName, match=f"unknown form field '{name}'"):
        submit(opened, **{name: "x"})
    assert [asked.method for asked in site.asked] == ["GET"]


@pytest.mark.parametrize("sent", [True, False])
def test_a_fault_of_the_submit_tells_whether_the_token_can_have_left(site, open_form, submit, sent):
    opened = open_form()
    site.fails(f"POST {PAGE}", kind="timeout", sent=sent)

    with pytest.raises(TargetUnavailable) as caught:
        submit(opened)
    assert caught.value.sent is sent


# -- which answer is judged


@pytest.mark.parametrize(
    "rule",
    [
        Rule(status=(303,)),
        Rule(location="/welcome*"),
        Rule(text="x", all=(Rule(location="/welcome"),)),
    ],
)
def test_a_rule_about_the_redirect_is_judged_on_it(site, open_form, submit, rule):
    site.redirect(PAGE, "/welcome?id=1", status=303, method="POST")
    answer, _ = submit(open_form(success=rule))

    assert (answer.status, str(answer.location)) == (303, "https://shop.example/welcome?id=1")
    assert site.asked[-1].method == "POST"


@pytest.mark.parametrize("rule", [Rule(text="Thanks"), Rule(status=(200,)), Rule(absent="captcha")])
def test_a_rule_about_the_page_is_judged_after_redirects(site, open_form, submit, rule):
    opened = open_form(success=rule)
    site.redirect(PAGE, "/step", status=303, method="POST")
    site.redirect("https://shop.example/step", "/welcome")
    site.page("https://shop.example/welcome", "<p>Thanks!</p>")
    answer, _ = submit(opened)

    assert (answer.status, answer.text) == (200, "<p>Thanks!</p>")
    assert rule.matches(answer)


def test_a_refusal_shown_by_the_redirect_is_not_lost(site, open_form, submit):
    refused = Rule(status=(302,), location="/signup?error*")
    site.redirect(PAGE, "/signup?error=captcha", method="POST")
    answer, _ = submit(open_form(success=Rule(text="Thanks"), refused=refused))

    assert refused.matches(answer)


@pytest.mark.parametrize("status", [307, 308])
def test_a_token_is_not_posted_once_more_for_a_redirect(site, open_form, submit, status):
    site.redirect(PAGE, "/again", status=status, method="POST")
    answer, _ = submit(open_form(success=Rule(text="Thanks")))

    assert answer.status == status
    assert [asked.method for asked in site.asked] == ["GET", "POST"]


def test_at_most_five_redirects_follow_a_submit(site, open_form, submit):
    opened = open_form(success=Rule(text="Thanks"))
    site.redirect(PAGE, "/0", method="POST")
    for number in range(9):
        site.redirect(f"https://shop.example/{number}", f"/{number + 1}")
    answer, _ = submit(opened)

    assert answer.status == 302
    assert len(site.asked) == 1 + 1 + 5


def test_a_redirect_elsewhere_after_the_submit_does_not_say_that_nothing_was_sent(site, open_form, submit):
    site.redirect(PAGE, "https://elsewhere.example/welcome", method="POST")

    with pytest.raises(
        PageError, match=r"was sent, and its answer redirects to https://elsewhere.example/welcome"
    ) as e:
        submit(open_form(success=Rule(text="Thanks")))
    assert not isinstance(e.value, ScopeDenied | ConfigError)


@pytest.mark.parametrize("location", ["https://u@elsewhere.example", "javascript:1", "https://[", "http://a b"])
def test_an_address_that_cannot_be_resolved_is_no_location(site, open_form, submit, location):
    site.redirect(PAGE, location, method="POST")
    answer, _ = submit(open_form())

    assert (answer.status, answer.location) == (302, None)


# -- the form's own token field, files, variants


def test_a_token_field_takes_the_place_of_the_types_own(site, open_form, submit):
    site.takes(PAGE, status=303)
    _, sent = submit(open_form(token_field="captchaToken"), name="x")

    assert ("captchaToken", SOLUTION.text) in sent
    assert "cf-turnstile-response" not in dict(sent)


def test_files_are_sent_in_the_fields_that_name_them(site, open_form, submit, tmp_path):
    cat = tmp_path / "cat.gif"
    cat.write_bytes(b"GIF89a")
    site.takes(PAGE, status=303)
    submit(open_form("multipart", files={"avatar": str(cat)}))

    body = site.asked[-1].payload.body
    assert b'name="avatar"; filename="cat.gif"\r\nContent-Type: image/gif\r\n\r\nGIF89a\r\n' in body
    assert body.count(b'name="avatar"') == 1


@pytest.mark.parametrize(
    ("page", "field", "error", "words"),
    [
        ("turnstile", "name", PageError, "which carries no file; a form with files needs enctype=multipart/form-data"),
        ("multipart", "avatr", UnknownName, "did you mean 'avatar'"),
    ],
    ids=["not multipart", "no such field"],
)
def test_a_form_that_cannot_take_the_file_is_told_when_it_is_opened(open_form, page, field, error, words):
    with pytest.raises(error, match=words):
        open_form(page, files={field: "cat.png"})


def test_a_variants_headers_are_sent_with_page_and_submit_and_replace_our_own(site, open_form, submit):
    site.takes(PAGE, status=303)
    submit(open_form(headers={"Accept-Language": "ru"}))

    assert [asked.payload.headers["Accept-Language"] for asked in site.asked] == ["ru", "ru"]
