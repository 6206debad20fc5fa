from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_captcha_qa.sandbox import altcha, keys, official, pictures, standin
from pytest_captcha_qa.sandbox import site as site_module
from pytest_captcha_qa.sandbox.audit import fingerprint
from pytest_captcha_qa.sandbox.backend import Question, VendorUnavailable
from pytest_captcha_qa.sandbox.binding import Binding
from pytest_captcha_qa.sandbox.forms import FLAWED, FORMS, SOUND, WITH_TEST_KEYS
from pytest_captcha_qa.sandbox.geetest import GEETEST_REGISTER
from pytest_captcha_qa.sandbox.types import TYPES
from pytest_captcha_qa.sandbox.web import Fields

PAIRS = {
    "recaptcha-v2": keys.RECAPTCHA_V2,
    "recaptcha-v2-invisible": keys.RECAPTCHA_V2_INVISIBLE,
    "recaptcha-v3": keys.RECAPTCHA_V3,
    "recaptcha-enterprise": keys.RECAPTCHA_ENTERPRISE,
    "turnstile": keys.TURNSTILE,
    "hcaptcha": keys.HCAPTCHA,
    "geetest-v3": keys.GEETEST_V3,
    "geetest-v4": keys.GEETEST_V4,
    "friendly-v2": keys.FRIENDLY_V2,
    "broken": keys.BROKEN,
    "unprotected": keys.UNPROTECTED,
}
TYPE_OF_FLAWED = {"broken": "turnstile", "unprotected": "recaptcha_v2"}
FIELDS = {
    "turnstile": "cf-turnstile-response",
    "hcaptcha": "h-captcha-response",
    "friendly_v2": "frc-captcha-response",
    "altcha": "altcha",
    "image": "captcha_answer",
}
ACTIONS = {"recaptcha-v3": "contact", "recaptcha-enterprise": "transfer", "turnstile": "login"}
SOUND_SLUGS = [form.slug for form in SOUND]
# Those whose token the vendor knows; the others are judged by the site itself.
OF_VENDORS = [slug for slug in SOUND_SLUGS if slug in PAIRS]
TEMPLATES = [form.slug for form in (*SOUND, *FLAWED)]


class Line:
    """The site's line to the vendor stand-in, in memory; it can be cut."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.cut = False

    async def __call__(self, question: Question) -> Mapping[str, Any]:
        if self.cut:
            raise VendorUnavailable(question.path)
        path, _, query = question.target.partition("?")
        params = dict(part.split("=") for part in query.split("&")) if query else {}
        headers = {name.lower(): value for name, value in question.all_headers.items()}
        reply = await self.client.acall(
            question.method, path, params=params, body=question.body or b"", headers=headers
        )
        return reply.json()


@pytest.fixture
def line(world: Any, make_client: Any) -> Line:
    return Line(make_client(standin.build_app(world.standin)))


@pytest.fixture
def proofs() -> dict[str, str]:
    return {}


@pytest.fixture
def visitor(world: Any, make_client: Any, line: Line, proofs: dict[str, str]) -> Any:
    return make_client(
        site_module.build_app(world.audit, line, release="1.2.3", proofs=proofs, faults=world.faults.site)
    )


@pytest.fixture
def fill_in(world: Any, visitor: Any) -> Any:
    """Open a form and return what a visitor who solved its captcha posts."""

    def fill_in(slug: str, **changes: str) -> dict[str, str]:
        page = visitor.get(f"/{slug}").text
        csrf = re.search(r'name="csrf_token" value="([^"]+)"', page)
        assert csrf
        posted = {"csrf_token": csrf[1], "email": "ann@example.com", "name": "Ann"}
        return {**posted, **solve(world, visitor, slug, page), **changes}

    return fill_in


def type_of(slug: str) -> str:
    return TYPE_OF_FLAWED.get(slug, slug.replace("-", "_"))


def solve(world: Any, visitor: Any, slug: str, page: str, sitekey: str | None = None) -> dict[str, str]:
    """Return the fields that a solved captcha fills in."""
    type_ = type_of(slug)
    linked = re.search(r'(?:challengeurl|src)="(/[\w/]+)"', page)
    if linked:
        challenge = visitor.get(linked[1])
        kind = challenge.header("content-type")
        answer = pictures.read(challenge.body) if kind == "image/png" else altcha.solved(challenge.json())
        return {FIELDS[type_]: answer}
    shown = re.search(r'data-challenge="([^"]+)"', page)
    binding = Binding(
        type_,
        sitekey or PAIRS[slug].sitekey,
        "http://127.0.0.1:8000/",
        action=ACTIONS.get(slug, ""),
        challenge=shown[1] if shown else "",
    )
    text, make = world.registry.issue(binding).text, TYPES[type_].parts
    if make is None:
        return {FIELDS.get(type_, "g-recaptcha-response"): text}
    prefix = "geetest_" if shown else ""
    return {f"{prefix}{name}": value for name, value in make(text, binding).items()}


def error_code(reply: Any) -> str | None:
    found = re.search(r'data-code="(\w+)"', reply.text)
    return found[1] if found else None


@pytest.mark.parametrize("slug", SOUND_SLUGS)
def test_a_solved_form_leads_to_the_welcome_page_once(visitor: Any, fill_in: Any, slug: str) -> None:
    reply = visitor.post(f"/{slug}", fill_in(slug))
    assert (reply.status, reply.header("location")) == (303, "/welcome")
    assert "Thank you" in visitor.get("/welcome").text
    assert "Thank you" not in visitor.get("/welcome").text


@pytest.mark.parametrize("slug", SOUND_SLUGS)
def test_a_replay_is_refused_with_a_fresh_form_that_does_not_show_the_token(
    visitor: Any, fill_in: Any, slug: str
) -> None:
    posted = fill_in(slug, name="<Ann> & co")
    visitor.post(f"/{slug}", posted)
    reply = visitor.post(f"/{slug}", posted)
    assert (reply.status, error_code(reply)) == (422, "captcha")
    assert "The captcha check failed" in reply.text
    assert "&lt;Ann&gt; &amp; co" in reply.text
    token = next(form.captcha for form in SOUND if form.slug == slug).token(Fields(tuple(posted.items())))
    assert token
    assert token not in reply.text


@pytest.mark.parametrize("slug", SOUND_SLUGS)
def test_a_form_without_a_token_is_refused_and_the_vendor_is_not_asked(
    world: Any, visitor: Any, fill_in: Any, slug: str
) -> None:
    fields = {name: value for name, value in fill_in(slug).items() if name in ("csrf_token", "email", "name")}
    asked = world.audit.vendor.by_endpoint.copy()
    reply = visitor.post(f"/{slug}", fields)
    assert (reply.status, error_code(reply)) == (422, "captcha")
    asked_since = world.audit.vendor.by_endpoint - asked
    assert asked_since.keys() <= {GEETEST_REGISTER}


@pytest.mark.parametrize("slug", SOUND_SLUGS)
def test_the_csrf_token_is_checked_before_the_captcha(world: Any, visitor: Any, fill_in: Any, slug: str) -> None:
    posted = fill_in(slug)
    for wrong in ("", "x", "ключ"):
        reply = visitor.post(f"/{slug}", {**posted, "csrf_token": wrong})
        assert (reply.status, error_code(reply)) == (403, "csrf")
    assert visitor.post(f"/{slug}", posted).status == 303


@pytest.mark.parametrize("slug", SOUND_SLUGS)
def test_the_form_of_another_session_is_refused(visitor: Any, fill_in: Any, slug: str) -> None:
    posted = fill_in(slug)
    visitor.cookie = ""
    assert visitor.post(f"/{slug}", posted).status == 403


@pytest.mark.parametrize("slug", ["recaptcha-v2", "geetest-v4", "altcha", "image"])
@pytest.mark.parametrize("wrong", [{"email": "nonsense"}, {"email": ""}, {"name": "  "}])
def test_other_fields_are_checked_after_the_captcha(
    visitor: Any, fill_in: Any, slug: str, wrong: dict[str, str]
) -> None:
    posted = fill_in(slug)
    reply = visitor.post(f"/{slug}", {**posted, **wrong})
    assert (reply.status, error_code(reply)) == (422, "fields")
    assert error_code(visitor.post(f"/{slug}", posted)) == "captcha"


@pytest.mark.parametrize("slug", OF_VENDORS)
def test_the_token_of_another_sitekey_is_refused(world: Any, visitor: Any, fill_in: Any, slug: str) -> None:
    page = visitor.get(f"/{slug}").text
    foreign = solve(world, visitor, slug, page, sitekey="another-sitekey")
    foreign |= {name: PAIRS[slug].sitekey for name in foreign if name == "captcha_id"}
    csrf = fill_in(slug)["csrf_token"]
    posted = {"csrf_token": csrf, "email": "ann@example.com", "name": "Ann", **foreign}
    assert error_code(visitor.post(f"/{slug}", posted)) == "captcha"


@pytest.mark.parametrize("slug", ACTIONS)
def test_forms_with_an_action_compare_it(world: Any, visitor: Any, fill_in: Any, slug: str) -> None:
    other = world.issue(type_of(slug), PAIRS[slug].sitekey, action="other")
    posted = fill_in(slug, **{FIELDS.get(type_of(slug), "g-recaptcha-response"): other})
    assert error_code(visitor.post(f"/{slug}", posted)) == "captcha"


@pytest.mark.parametrize("slug", ["recaptcha-v3", "recaptcha-enterprise"])
def test_v3_and_enterprise_refuse_a_low_score(world: Any, visitor: Any, fill_in: Any, slug: str) -> None:
    world.faults.load({"vendor": [{"kind": "score", "score": 0.1, "count": 1}]})
    assert error_code(visitor.post(f"/{slug}", fill_in(slug))) == "captcha"
    assert visitor.post(f"/{slug}", fill_in(slug)).status == 303


@pytest.mark.parametrize(("score", "status"), [(0.49, 422), (0.5, 303), (None, 422), ("0.9", 422)])
def test_v3_compares_the_score(world: Any, make_client: Any, score: object, status: int, fill_in: Any) -> None:
    async def vendor(question: Question) -> Mapping[str, Any]:
        return {"success": True, "action": "contact", "hostname": "127.0.0.1", "score": score}

    strict = make_client(site_module.build_app(world.audit, vendor, release="1", proofs={}, faults=world.faults.site))
    csrf = re.search(r'csrf_token" value="([^"]+)"', strict.get("/recaptcha-v3").text)
    assert csrf
    posted = {**fill_in("recaptcha-v3"), "csrf_token": csrf[1]}
    assert strict.post("/recaptcha-v3", posted).status == status


@pytest.mark.parametrize("slug", ["geetest-v3", "altcha", "image"])
def test_a_page_bound_type_takes_no_challenge_of_another_session(visitor: Any, fill_in: Any, slug: str) -> None:
    stolen = fill_in(slug)
    visitor.cookie = ""
    own = fill_in(slug)
    mixed = {**stolen, "csrf_token": own["csrf_token"]}
    assert error_code(visitor.post(f"/{slug}", mixed)) == "captcha"


@pytest.mark.parametrize("slug", ["altcha", "image"])
def test_a_challenge_that_the_widget_fetches_is_another_each_time_and_is_not_kept(visitor: Any, slug: str) -> None:
    first, second = (visitor.get(f"/{slug}/challenge") for _ in range(2))
    assert first.body != second.body
    assert first.header("cache-control") == "no-store"


def test_an_answer_to_an_image_is_taken_in_any_case(visitor: Any, fill_in: Any) -> None:
    posted = fill_in("image")
    posted["captcha_answer"] = f" {posted['captcha_answer'].lower()} "
    assert visitor.post("/image", posted).status == 303


def test_an_altcha_payload_that_the_site_did_not_sign_is_refused(visitor: Any, fill_in: Any) -> None:
    forged = altcha.solved(altcha.new_challenge("a-made-up-key", expires=2**40))
    assert error_code(visitor.post("/altcha", fill_in("altcha", altcha=forged))) == "captcha"
    unmarked = json.loads(base64.b64decode(fill_in("altcha")["altcha"]))
    del unmarked["mark"]
    plain = base64.b64encode(json.dumps(unmarked).encode()).decode()
    assert error_code(visitor.post("/altcha", fill_in("altcha", altcha=plain))) == "captcha"


def test_what_friendlys_widget_fills_in_before_a_solve_never_reaches_the_vendor(
    world: Any, visitor: Any, fill_in: Any
) -> None:
    posted = fill_in("friendly-v2", **{"frc-captcha-response": ".UNSTARTED"})
    assert error_code(visitor.post("/friendly-v2", posted)) == "captcha"
    assert world.audit.vendor.calls == 0


@pytest.mark.parametrize(
    ("slug", "field", "token", "status"),
    [
        ("test-recaptcha-v2", "g-recaptcha-response", "anything", 303),
        ("test-turnstile", "cf-turnstile-response", "XXXX.DUMMY.TOKEN.XXXX", 303),
        ("test-turnstile", "cf-turnstile-response", "anything", 422),
        ("test-turnstile-fails", "cf-turnstile-response", "XXXX.DUMMY.TOKEN.XXXX", 422),
        ("test-turnstile-spent", "cf-turnstile-response", "XXXX.DUMMY.TOKEN.XXXX", 422),
        ("test-hcaptcha", "h-captcha-response", "10000000-aaaa-bbbb-cccc-000000000001", 303),
        ("test-hcaptcha", "h-captcha-response", "anything", 422),
    ],
)
def test_the_forms_with_official_test_keys_do_what_the_vendors_say(
    visitor: Any, slug: str, field: str, token: str, status: int
) -> None:
    csrf = re.search(r'csrf_token" value="([^"]+)"', visitor.get(f"/{slug}").text)
    assert csrf
    posted = {"csrf_token": csrf[1], "email": "ann@example.com", "name": "Ann", field: token}
    assert [visitor.post(f"/{slug}", posted).status for _ in range(2)] == [status, status]


def test_each_geetest_page_has_a_fresh_challenge_in_script_and_markup(visitor: Any) -> None:
    pages = [visitor.get("/geetest-v3").text for _ in range(2)]
    in_markup = [re.findall(r'data-challenge="(\w{32})"', page) for page in pages]
    in_script = [re.findall(r'initGeetest\(\{gt: "\w{32}", challenge: "(\w{32})"', page) for page in pages]
    assert in_markup == in_script
    assert in_markup[0] != in_markup[1]


@pytest.mark.parametrize("slug", OF_VENDORS)
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


@pytest.mark.parametrize("slug", TEMPLATES)
def test_a_page_has_one_protected_form_between_two_others(visitor: Any, slug: str) -> None:
    page = visitor.get(f"/{slug}").text
    assert re.findall(r'<form id="([\w-]+)"', page) == ["search", slug, "newsletter"]
    assert "csrf_token" not in page.partition(f'<form id="{slug}"')[0]


@pytest.mark.parametrize("slug", PAIRS)
def test_a_page_shows_its_sitekey_and_never_its_secret(visitor: Any, slug: str) -> None:
    page = visitor.get(f"/{slug}").text
    assert PAIRS[slug].sitekey in page
    assert PAIRS[slug].secret not in page


@pytest.mark.parametrize(
    ("slug", "script"),
    [
        ("recaptcha-v2", "https://www.google.com/recaptcha/api.js"),
        ("recaptcha-v2-invisible", "https://www.google.com/recaptcha/api.js"),
        ("recaptcha-v3", "https://www.google.com/recaptcha/api.js?render=" + keys.RECAPTCHA_V3.sitekey),
        (
            "recaptcha-enterprise",
            "https://www.google.com/recaptcha/enterprise.js?render=" + keys.RECAPTCHA_ENTERPRISE.sitekey,
        ),
        ("turnstile", "https://challenges.cloudflare.com/turnstile/v0/api.js"),
        ("hcaptcha", "https://js.hcaptcha.com/1/api.js"),
        ("geetest-v3", "https://static.geetest.com/static/tools/gt.js"),
        ("geetest-v4", "https://static.geetest.com/v4/gt4.js"),
        ("friendly-v2", "https://cdn.jsdelivr.net/npm/@friendlycaptcha/sdk/site.min.js"),
        ("altcha", "https://cdn.jsdelivr.net/npm/altcha/dist/altcha.min.js"),
        ("test-turnstile", "https://challenges.cloudflare.com/turnstile/v0/api.js"),
    ],
)
def test_a_page_has_the_vendors_script(visitor: Any, slug: str, script: str) -> None:
    assert f'src="{script}"' in visitor.get(f"/{slug}").text


def test_the_test_keys_of_the_sandbox_are_no_keys_of_the_demo() -> None:
    assert {form.slug for form in WITH_TEST_KEYS} & set(SOUND_SLUGS) == set()
    assert not {pair.secret for pair in keys.PAIRS} & set(official.TEST_SECRETS)


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
    assert links == [form.slug for form in FORMS]


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


@pytest.mark.parametrize("slug", SOUND_SLUGS)
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
