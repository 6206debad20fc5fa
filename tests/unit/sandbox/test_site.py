from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import pytest

from pytest_captcha_qa.sandbox import keys, site, standin
from pytest_captcha_qa.sandbox.audit import fingerprint
from pytest_captcha_qa.sandbox.backend import VendorUnavailable

PAIRS = {
    "recaptcha-v2": ("recaptcha_v2", keys.RECAPTCHA_V2),
    "recaptcha-v3": ("recaptcha_v3", keys.RECAPTCHA_V3),
    "turnstile": ("turnstile", keys.TURNSTILE),
    "geetest-v3": ("geetest_v3", keys.GEETEST_V3),
    "broken": ("turnstile", keys.BROKEN),
    "unprotected": ("recaptcha_v2", keys.UNPROTECTED),
}
SOUND = ("recaptcha-v2", "recaptcha-v3", "turnstile", "geetest-v3")


class Line:
    """The site's line to the vendor stand-in, in memory; it can be cut."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.cut = False

    async def __call__(self, path: str, fields: Mapping[str, str]) -> Mapping[str, Any]:
        if self.cut:
            raise VendorUnavailable(path)
        if path == standin.GEETEST_REGISTER:
            reply = await self.client.acall("GET", path, params=fields)
        else:
            form = {"content-type": "application/x-www-form-urlencoded"}
            reply = await self.client.acall("POST", path, body=urlencode(fields).encode(), headers=form)
        return reply.json()


@pytest.fixture
def line(world: Any, make_client: Any) -> Line:
    return Line(make_client(standin.build_app(world.standin)))


@pytest.fixture
def proofs() -> dict[str, str]:
    return {}


@pytest.fixture
def visitor(world: Any, make_client: Any, line: Line, proofs: dict[str, str]) -> Any:
    return make_client(site.build_app(world.audit, line, release="1.2.3", proofs=proofs, faults=world.faults.site))


@pytest.fixture
def fill_in(world: Any, visitor: Any) -> Any:
    """Open a form and return what a visitor who solved its captcha posts."""

    def fill_in(slug: str, **changes: str) -> dict[str, str]:
        page = visitor.get(f"/{slug}").text
        csrf = re.search(r'name="csrf_token" value="([^"]+)"', page)
        assert csrf
        posted = {"csrf_token": csrf[1], "email": "ann@example.com", "name": "Ann"}
        return {**posted, **solve(world, slug, page), **changes}

    return fill_in


def solve(world: Any, slug: str, page: str) -> dict[str, str]:
    type_, pair = PAIRS[slug]
    challenge = re.search(r'data-challenge="([^"]+)"', page)
    if challenge:
        validate = world.issue(type_, pair.sitekey, challenge=challenge[1])
        parts = {"challenge": challenge[1], "validate": validate, "seccode": f"{validate}|jordan"}
        return {f"geetest_{name}": value for name, value in parts.items()}
    token = world.issue(type_, pair.sitekey, action="contact" if type_ == "recaptcha_v3" else "")
    return {"cf-turnstile-response" if type_ == "turnstile" else "g-recaptcha-response": token}


def error_code(reply: Any) -> str | None:
    found = re.search(r'data-code="(\w+)"', reply.text)
    return found[1] if found else None


@pytest.mark.parametrize("slug", SOUND)
def test_a_solved_form_leads_to_the_welcome_page_once(visitor: Any, fill_in: Any, slug: str) -> None:
    reply = visitor.post(f"/{slug}", fill_in(slug))
    assert (reply.status, reply.header("location")) == (303, "/welcome")
    assert "Thank you" in visitor.get("/welcome").text
    assert "Thank you" not in visitor.get("/welcome").text


@pytest.mark.parametrize("slug", SOUND)
def test_a_replay_is_refused_with_a_fresh_form_that_does_not_show_the_token(
    visitor: Any, fill_in: Any, slug: str
) -> None:
    posted = fill_in(slug, name="<Ann> & co")
    visitor.post(f"/{slug}", posted)
    reply = visitor.post(f"/{slug}", posted)
    assert (reply.status, error_code(reply)) == (422, "captcha")
    assert "The captcha check failed" in reply.text
    assert "&lt;Ann&gt; &amp; co" in reply.text
    assert not [
        name for name, value in posted.items() if name.endswith(("response", "validate")) and value in reply.text
    ]


@pytest.mark.parametrize("slug", SOUND)
def test_a_form_without_a_token_is_refused_and_the_vendor_is_not_asked(
    world: Any, visitor: Any, fill_in: Any, slug: str
) -> None:
    fields = {name: value for name, value in fill_in(slug).items() if name in ("csrf_token", "email", "name")}
    asked = world.audit.vendor.by_endpoint.copy()
    reply = visitor.post(f"/{slug}", fields)
    assert (reply.status, error_code(reply)) == (422, "captcha")
    asked_since = world.audit.vendor.by_endpoint - asked
    assert asked_since.keys() <= {standin.GEETEST_REGISTER}


@pytest.mark.parametrize("slug", SOUND)
def test_the_csrf_token_is_checked_before_the_captcha(world: Any, visitor: Any, fill_in: Any, slug: str) -> None:
    posted = fill_in(slug)
    for wrong in ("", "x", "ключ"):
        reply = visitor.post(f"/{slug}", {**posted, "csrf_token": wrong})
        assert (reply.status, error_code(reply)) == (403, "csrf")
    assert visitor.post(f"/{slug}", posted).status == 303


@pytest.mark.parametrize("slug", SOUND)
def test_the_form_of_another_session_is_refused(visitor: Any, fill_in: Any, slug: str) -> None:
    posted = fill_in(slug)
    visitor.cookie = ""
    assert visitor.post(f"/{slug}", posted).status == 403


@pytest.mark.parametrize("slug", SOUND)
@pytest.mark.parametrize("wrong", [{"email": "nonsense"}, {"email": ""}, {"name": "  "}])
def test_other_fields_are_checked_after_the_captcha(
    visitor: Any, fill_in: Any, slug: str, wrong: dict[str, str]
) -> None:
    posted = fill_in(slug)
    reply = visitor.post(f"/{slug}", {**posted, **wrong})
    assert (reply.status, error_code(reply)) == (422, "fields")
    assert error_code(visitor.post(f"/{slug}", posted)) == "captcha"


@pytest.mark.parametrize("slug", SOUND)
def test_the_token_of_another_sitekey_is_refused(world: Any, visitor: Any, fill_in: Any, slug: str) -> None:
    posted = fill_in(slug)
    foreign = world.issue(PAIRS[slug][0], "another-sitekey", challenge=posted.get("geetest_challenge", ""))
    swapped = {
        name: {"geetest_validate": foreign, "geetest_seccode": f"{foreign}|jordan"}.get(
            name, foreign if name.endswith("response") else value
        )
        for name, value in posted.items()
    }
    assert error_code(visitor.post(f"/{slug}", swapped)) == "captcha"


def test_v3_compares_the_action(world: Any, visitor: Any, fill_in: Any) -> None:
    other = world.issue("recaptcha_v3", keys.RECAPTCHA_V3.sitekey, action="login")
    posted = fill_in("recaptcha-v3", **{"g-recaptcha-response": other})
    assert error_code(visitor.post("/recaptcha-v3", posted)) == "captcha"


@pytest.mark.parametrize(("score", "status"), [(0.49, 422), (0.5, 303), (None, 422), ("0.9", 422)])
def test_v3_compares_the_score(world: Any, make_client: Any, score: object, status: int, fill_in: Any) -> None:
    async def vendor(path: str, fields: Mapping[str, str]) -> Mapping[str, Any]:
        return {"success": True, "action": "contact", "score": score}

    strict = make_client(site.build_app(world.audit, vendor, release="1", proofs={}, faults=world.faults.site))
    csrf = re.search(r'csrf_token" value="([^"]+)"', strict.get("/recaptcha-v3").text)
    assert csrf
    posted = {**fill_in("recaptcha-v3"), "csrf_token": csrf[1]}
    assert strict.post("/recaptcha-v3", posted).status == status


def test_geetest_takes_no_challenge_of_another_session(world: Any, visitor: Any, fill_in: Any) -> None:
    stolen = fill_in("geetest-v3")
    visitor.cookie = ""
    own = fill_in("geetest-v3")
    mixed = {**own, **{name: value for name, value in stolen.items() if name.startswith("geetest_")}}
    assert error_code(visitor.post("/geetest-v3", mixed)) == "captcha"


def test_each_geetest_page_has_a_fresh_challenge_in_script_and_markup(visitor: Any) -> None:
    pages = [visitor.get("/geetest-v3").text for _ in range(2)]
    in_markup = [re.findall(r'data-challenge="(\w{32})"', page) for page in pages]
    in_script = [re.findall(r'initGeetest\(\{gt: "\w{32}", challenge: "(\w{32})"', page) for page in pages]
    assert in_markup == in_script
    assert in_markup[0] != in_markup[1]


@pytest.mark.parametrize("slug", SOUND)
def test_a_vendor_that_cannot_be_reached_closes_the_form(visitor: Any, fill_in: Any, line: Line, slug: str) -> None:
    posted = fill_in(slug)
    line.cut = True
    reply = visitor.post(f"/{slug}", posted)
    assert reply.status == 503
    assert "does not answer" in reply.text


def test_the_broken_form_refuses_every_token(visitor: Any, fill_in: Any) -> None:
    for _ in range(2):
        assert error_code(visitor.post("/broken", fill_in("broken"))) == "captcha"


def test_the_unprotected_form_takes_anything(visitor: Any, fill_in: Any) -> None:
    assert visitor.post("/unprotected", fill_in("unprotected", **{"g-recaptcha-response": ""})).status == 303


@pytest.mark.parametrize("slug", PAIRS)
def test_a_page_has_one_protected_form_between_two_others(visitor: Any, slug: str) -> None:
    page = visitor.get(f"/{slug}").text
    assert re.findall(r'<form id="([\w-]+)"', page) == ["search", slug, "newsletter"]
    assert "csrf_token" not in page.partition(f'<form id="{slug}"')[0]
    assert PAIRS[slug][1].sitekey in page
    assert PAIRS[slug][1].secret not in page


@pytest.mark.parametrize(
    ("slug", "script"),
    [
        ("recaptcha-v2", "https://www.google.com/recaptcha/api.js"),
        ("recaptcha-v3", "https://www.google.com/recaptcha/api.js?render=" + keys.RECAPTCHA_V3.sitekey),
        ("turnstile", "https://challenges.cloudflare.com/turnstile/v0/api.js"),
        ("geetest-v3", "https://static.geetest.com/static/tools/gt.js"),
    ],
)
def test_a_page_has_the_vendors_script(visitor: Any, slug: str, script: str) -> None:
    assert f'<script src="{script}"' in visitor.get(f"/{slug}").text


@pytest.mark.parametrize("content_type", ["application/json", "multipart/form-data"])
def test_a_body_that_cannot_be_read_is_a_bad_request(visitor: Any, content_type: str) -> None:
    reply = visitor.call("POST", "/turnstile", body=b"\xff{", headers={"content-type": content_type})
    assert reply.status == 400


def test_an_accepted_login_opens_the_account_under_a_new_cookie(visitor: Any, fill_in: Any) -> None:
    before = visitor.get("/account")
    assert (before.status, before.header("location")) == (303, "/turnstile")
    posted = fill_in("turnstile")
    anonymous = visitor.cookie
    visitor.post("/turnstile", posted)
    assert visitor.cookie != anonymous
    after = visitor.get("/account")
    assert (after.status, "You are logged in." in after.text) == (200, True)


def test_posts_are_counted_by_form_and_by_token(world: Any, visitor: Any, fill_in: Any) -> None:
    posted = fill_in("turnstile")
    visitor.post("/turnstile", posted)
    visitor.post("/turnstile", posted)
    visitor.post("/turnstile", {**posted, "csrf_token": ""})
    visitor.post("/newsletter", {"email": "ann@example.com"})
    counts = world.audit.site.snapshot()
    assert counts["gets"] == {"turnstile": 1}
    assert counts["posts"] == {"turnstile": 3, "newsletter": 1}
    assert (counts["accepted"], counts["refused"]) == ({"turnstile": 1}, {"turnstile": 2})
    assert counts["refusals"] == {"captcha": 1, "csrf": 1}
    assert counts["posts_by_token"] == {fingerprint(posted["cf-turnstile-response"]): 3}
    assert posted["cf-turnstile-response"] not in str(counts)


def test_the_index_links_every_form(visitor: Any) -> None:
    links = re.findall(r'<li><a href="/([\w-]+)">', visitor.get("/").text)
    assert links == list(PAIRS)


def test_the_release_is_told(visitor: Any) -> None:
    assert visitor.get("/version").json() == {"version": "1.2.3"}


def test_health_search_and_newsletter_answer(visitor: Any) -> None:
    assert visitor.get("/healthz").text == "ok\n"
    assert visitor.get("/search", {"q": "<b>"}).status == 200
    assert visitor.post("/newsletter", {"email": "x"}).status == 200


def test_a_proof_is_served_as_plain_text_once_it_was_handed_in(visitor: Any, proofs: dict[str, str]) -> None:
    assert visitor.get("/.well-known/captcha-qa/team.txt").status == 404
    proofs["team"] = "origins = here\n"
    reply = visitor.get("/.well-known/captcha-qa/team.txt")
    assert (reply.status, reply.text) == (200, "origins = here\n")
    assert reply.header("content-type") == "text/plain; charset=utf-8"


@pytest.mark.parametrize("target", ["/welcome", "http://localhost:9/x", "https://shop.example/"])
def test_a_redirect_leads_where_the_query_says(visitor: Any, target: str) -> None:
    reply = visitor.get("/redirect", {"to": target})
    assert (reply.status, reply.header("location")) == (302, target)


def test_a_redirect_carries_no_second_header(visitor: Any) -> None:
    reply = visitor.get("/redirect", {"to": "/\r\nset-cookie: a=b"})
    assert reply.header("set-cookie") is None
    assert "\n" not in (reply.header("location") or "")


@pytest.mark.parametrize("slug", SOUND)
def test_a_form_refuses_as_often_as_is_switched_on(world: Any, visitor: Any, fill_in: Any, slug: str) -> None:
    world.faults.load({"site": [{"kind": "refuse", "form": slug, "count": 1}]})
    first = visitor.post(f"/{slug}", fill_in(slug))
    assert (first.status, error_code(first)) == (422, "captcha")
    assert visitor.post(f"/{slug}", fill_in(slug)).status == 303


def test_a_page_shows_the_sitekey_that_is_switched_on(world: Any, visitor: Any) -> None:
    world.faults.load({"site": [{"kind": "sitekey", "sitekey": "0x4AAAAAAASANDBOXmoved001", "form": "turnstile"}]})
    assert 'data-sitekey="0x4AAAAAAASANDBOXmoved001"' in visitor.get("/turnstile").text
    assert keys.BROKEN.sitekey in visitor.get("/broken").text
    assert keys.GEETEST_V3.sitekey in visitor.get("/geetest-v3").text
