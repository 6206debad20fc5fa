"""The forms of the lab: sound ones take a good token only, each flawed one makes its own mistake and no other."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest

from pytest_captcha_qa.sandbox import keys, standin
from pytest_captcha_qa.sandbox import site as site_module
from pytest_captcha_qa.sandbox.backend import Question, Trouble, VendorUnavailable
from pytest_captcha_qa.sandbox.binding import Binding
from pytest_captcha_qa.sandbox.impostors import Impostors
from pytest_captcha_qa.sandbox.issuing import with_admin
from pytest_captcha_qa.sandbox.lab import checks
from pytest_captcha_qa.sandbox.lab.page import MOST_REFUSALS, lab_routes
from pytest_captcha_qa.sandbox.lab.posts import ACTION
from pytest_captcha_qa.sandbox.lab.table import FLAWED, LAB, SOUND, LabForm
from pytest_captcha_qa.sandbox.scripted import Book

MADE_UP = "0.made-up" * 20
PAGE = "http://127.0.0.1:8000/lab"
TYPES = {"turnstile": "turnstile", "recaptcha_v3": "recaptcha_v3", "hcaptcha": "hcaptcha"}
OWN_WAY = {"m32", "m38"}  # official test keys, and a type with more than one field
PEOPLE = itertools.count()
BY_SLUG = {form.slug: form for form in LAB}


class Line:
    """The lab's line to the vendor, in memory; `down` says what trouble it has."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.down: VendorUnavailable | None = None
        self.asked = 0

    async def __call__(self, question: Question) -> Mapping[str, Any]:
        self.asked += 1
        if self.down is not None:
            raise self.down
        headers = {name.lower(): value for name, value in question.all_headers.items()}
        path, _, query = question.target.partition("?")
        params = dict(parse_qsl(query))
        reply = await self.client.acall(
            question.method, path, params=params, body=question.body or b"", headers=headers
        )
        if reply.status >= 400:
            raise VendorUnavailable("", Trouble.STATUS, reply.status)
        try:
            found = reply.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise VendorUnavailable("", Trouble.NO_JSON)
        return found


class Visitor:
    """Somebody who opens a form of the lab, solves its captcha and submits it."""

    def __init__(self, client: Any, form: LabForm, token: Callable[..., str]) -> None:
        self.client, self.form, self.new_token = client, form, token

    def fields(self) -> dict[str, str]:
        page = self.client.get(self.form.path).text
        csrf = re.search(r'(?:name="csrf_token" value|name="csrf-token" content)="([^"]+)"', page)
        assert csrf
        return {"csrf_token": csrf[1], "email": f"{next(PEOPLE)}@example.com", "name": "Ann"}

    def submit(self, token: str | None = None, **options: Any) -> bool:
        """Return whether a submit with this token, by default a fresh one, is accepted."""
        return self.status(self.new_token(self.form) if token is None else token, **options) in (201, 303)

    def status(self, token: str, *, field: str = "", more: Mapping[str, str] | None = None, **options: Any) -> int:
        posted = {**self.fields(), field or self.form.kind.field_name: token, **(more or {})}
        return self.send([(name, value) for name, value in posted.items() if name], **options)

    def bare(self, more: Mapping[str, str] | None = None, **options: Any) -> bool:
        """Return whether a submit without any token is accepted."""
        return self.send([*{**self.fields(), **(more or {})}.items()], **options) in (201, 303)

    def send(
        self,
        pairs: list[tuple[str, str]],
        *,
        verb: str = "POST",
        suffix: str = "",
        headers: Mapping[str, str] | None = None,
        as_json: bool = False,
    ) -> int:
        body = json.dumps(dict(pairs)) if as_json else urlencode(pairs)
        kind = "application/json" if as_json else "application/x-www-form-urlencoded"
        sent = {"content-type": kind, **(headers or {})}
        reply = self.client.call(verb, self.form.path + suffix, body=body.encode(), headers=sent)
        return int(reply.status)


@pytest.fixture
def book(world: Any) -> Book:
    return Book(world.registry, world.clock)


@pytest.fixture
def line(world: Any, book: Book, make_client: Any, impostors: Impostors) -> Line:
    return Line(make_client(with_admin(standin.build_app(world.standin), book, impostors)))


@pytest.fixture
def app(world: Any, line: Line) -> Any:
    more = partial(lab_routes, world.audit, line, clock=world.clock)
    return site_module.build_app(world.audit, line, release="1", proofs={}, faults=world.faults.site, more=more)


@pytest.fixture
def new_token(world: Any, line: Line) -> Callable[..., str]:
    """`new_token(form, outcome=None, age=0)` returns a token as the form's widget gets it."""

    def new(form: LabForm, outcome: Mapping[str, Any] | None = None, age: float = 0.0) -> str:
        wish = {
            "type": TYPES[form.kind.template], "sitekey": form.keys.sitekey, "page": PAGE, "session": "s",
            "action": ACTION, "age": age, **({"outcome": outcome} if outcome else {}),
        }  # fmt: skip
        return str(line.client.post_json("/standin/tokens", wish).json()["token"])

    return new


@pytest.fixture
def visit(app: Any, make_client: Any, new_token: Callable[..., str]) -> Callable[[str], Visitor]:
    return lambda slug: Visitor(make_client(app), BY_SLUG[slug], new_token)


def replayed(visitor: Visitor, world: Any) -> bool:
    token = visitor.new_token(visitor.form)
    assert visitor.submit(token)
    world.clock.advance(2)
    visitor.client.cookie = ""
    return visitor.submit(token)


def scripted(**outcome: Any) -> Callable[[Visitor, Any], bool]:
    return lambda visitor, world: visitor.submit(visitor.new_token(visitor.form, outcome))


def in_trouble(trouble: Trouble, status: int | None = None) -> Callable[[Visitor, Any], bool]:
    def act(visitor: Visitor, world: Any) -> bool:
        token, line = visitor.new_token(visitor.form), world.line
        line.down = VendorUnavailable("", trouble, status)
        try:
            return visitor.submit(token)
        finally:
            line.down = None

    return act


def of_other_form(visitor: Visitor, world: Any) -> bool:
    other = BY_SLUG["sound"] if visitor.form.slug != "sound" else BY_SLUG["m05"]
    if other.kind.template != visitor.form.kind.template:
        return False
    return visitor.submit(visitor.new_token(other))


def several(visitor: Visitor, world: Any) -> bool:
    name, good = visitor.form.kind.field_name, visitor.new_token(visitor.form)
    orders = [[MADE_UP, good], [visitor.new_token(visitor.form), MADE_UP]]
    sent = [[*visitor.fields().items(), *((name, token) for token in tokens)] for tokens in orders]
    return all(visitor.send(pairs) in (201, 303) for pairs in sent)


def by_other_form_of_body(visitor: Visitor, world: Any) -> bool:
    fields = visitor.fields()
    return visitor.send([*fields.items()], as_json=not visitor.form.api) in (201, 303)


def remembered(visitor: Visitor, world: Any) -> bool:
    return visitor.submit() and visitor.bare()


def crashes_on_a_list(visitor: Visitor, world: Any) -> bool:
    return visitor.status("x", field=f"{visitor.form.kind.field_name}[]") in (201, 303, 500)


def unlimited(visitor: Visitor, world: Any) -> bool:
    # All limited forms share the code of the one that is asked; thirty posts to each would prove no more.
    if visitor.form.limited and visitor.form.check not in (checks.everything_passes, checks.any_text_passes):
        return visitor.form.slug == "sound" and _unlimited(visitor)
    return _unlimited(visitor)


def _unlimited(visitor: Visitor) -> bool:
    return 429 not in {visitor.status(MADE_UP) for _ in range(MOST_REFUSALS + 2)}


def effect_without_check(visitor: Visitor, world: Any) -> bool:
    visitor.status(MADE_UP, more={"email": "new@example.com"})
    return bool(visitor.client.get(f"{visitor.form.path}/effect", {"email": "new@example.com"}).status == 200)


def asked_more_than_once(visitor: Visitor, world: Any) -> bool:
    token, before = visitor.new_token(visitor.form), world.line.asked
    visitor.submit(token)
    return bool(world.line.asked - before > 1)


def canary_arrives(visitor: Visitor, world: Any) -> bool:
    visitor.submit(f"{visitor.new_token(visitor.form)}&canary=1")
    return any("canary" in entry.names for entry in world.book.log.entries)


def page_has(pattern: str) -> Callable[[Visitor, Any], bool]:
    return lambda visitor, world: bool(re.search(pattern, visitor.client.get(visitor.form.path).text))


def knows_people(visitor: Visitor, world: Any) -> bool:
    visitor.send([*{**visitor.fields(), visitor.form.kind.field_name: visitor.new_token(visitor.form), **ANN}.items()])
    return visitor.status(MADE_UP, more=ANN) != visitor.status(MADE_UP, more={"email": "nobody@example.com"})


def tells_codes(visitor: Visitor, world: Any) -> bool:
    posted = {**visitor.fields(), visitor.form.kind.field_name: MADE_UP}
    return "invalid-input-response" in visitor.client.post(visitor.form.path, posted).text


def echoes(visitor: Visitor, world: Any) -> bool:
    posted = {**visitor.fields(), visitor.form.kind.field_name: visitor.new_token(visitor.form), "name": " "}
    return posted[visitor.form.kind.field_name] in visitor.client.post(visitor.form.path, posted).text


ANN = {"email": "ann@example.com"}
SCORED = {"recaptcha_v3"}
RISKY = {"hcaptcha"}
PLAIN = {"turnstile"}
ANY = SCORED | RISKY | PLAIN

# The mistake, which types can have it, and whether a form has it; the same things as the probes do, in short.
MISTAKES: dict[str, tuple[set[str], Callable[[Visitor, Any], bool]]] = {
    "M02": (ANY, lambda visitor, world: visitor.bare()),
    "M03": (ANY, lambda visitor, world: any(visitor.submit(text) for text in ("", "  ", "null", "undefined"))),
    "M04": (ANY, lambda visitor, world: visitor.submit(MADE_UP)),
    "M05": (ANY, replayed),
    "M07": (ANY, lambda visitor, world: visitor.submit(visitor.new_token(visitor.form, age=301))),
    "M08": (SCORED | PLAIN, scripted(action="other")),
    "M09": (SCORED, scripted(score=0.1)),
    "M10": (RISKY, scripted(score=0.95)),
    "M11": (ANY, scripted(hostname="evil.example")),
    "M12": (ANY, of_other_form),
    "M13": (ANY, in_trouble(Trouble.TIMEOUT)),
    "M14": (ANY, in_trouble(Trouble.STATUS, 429)),
    "M15": (ANY, in_trouble(Trouble.NO_JSON)),
    "M16": (ANY, scripted(code="")),
    "M17": (ANY, scripted(code="never-heard-of")),
    "M18": (ANY, crashes_on_a_list),
    "M19": (ANY, several),
    "M20": (ANY, canary_arrives),
    "M21": (ANY, by_other_form_of_body),
    "M22": (ANY, lambda visitor, world: visitor.bare(verb="PUT")),
    "M23": (ANY, lambda visitor, world: visitor.bare(suffix="/mobile")),
    "M24": (ANY, lambda visitor, world: visitor.bare(suffix="/resend")),
    "M25": (ANY, lambda visitor, world: visitor.bare({"skip_captcha": "1"}, headers={"x-test-environment": "1"})),
    "M26": (ANY, lambda visitor, world: visitor.bare(headers={"x-forwarded-for": "192.0.2.10"})),
    "M27": (ANY, effect_without_check),
    "M28": (ANY, asked_more_than_once),
    "M29": (ANY, echoes),
    "M31": (ANY, page_has(r"0x4\w{32}")),
    "M33": (ANY, tells_codes),
    "M34": (ANY, knows_people),
    "M35": (ANY, unlimited),
    "M36": (ANY, remembered),
    "M37": (ANY, lambda visitor, world: visitor.status("x" * 100_000) != 422),
    "M39": (ANY, page_has(r'data-sitekey=""')),
}
# What a form without a check takes is not got around: the bare submit is accepted already.
AROUND = {"M21", "M22", "M23", "M24", "M25", "M26", "M36"}
ELSEWHERE = {"M01", "M06", "M30", "M32", "M38"}


@pytest.mark.parametrize("form", [form for form in LAB if form.slug not in OWN_WAY], ids=lambda form: form.slug)
def test_a_form_takes_a_good_token_and_makes_its_own_mistake_and_those_that_come_with_it(
    form: LabForm, visit: Callable[[str], Visitor], world: Any, line: Line, book: Book
) -> None:
    world.line, world.book = line, book
    assert visit(form.slug).submit()
    found = set()
    for mistake, (types, makes) in MISTAKES.items():
        visitor = visit(form.slug)
        around = mistake in AROUND and visitor.bare()
        if form.kind.template in types and not around and makes(visitor, world):
            found.add(mistake)
    expected = {mistake for mistake in (form.probe, *form.implied) if mistake and mistake not in ELSEWHERE}
    policy = {"M13", "M15"} if form.slug == "sound-open" else set()
    if form.slug == "m06":  # after its second it refuses what m05 takes
        expected -= {"M05"}
    assert found == expected | policy


def test_one_token_passes_many_times_at_once(visit: Callable[[str], Visitor]) -> None:
    visitor = visit("m06")
    token = visitor.new_token(visitor.form)
    assert [visitor.submit(token), visitor.submit(token)] == [True, True]


def test_a_policy_that_blocks_the_widget_stands_in_the_header(visit: Callable[[str], Visitor]) -> None:
    policies = [visit(slug).client.get(f"/lab/{slug}").header("content-security-policy") for slug in ("m30", "sound")]
    assert policies == ["default-src 'self'; script-src 'self'", None]


def test_test_keys_take_their_dummy_token(visit: Callable[[str], Visitor]) -> None:
    visitor = visit("m32")
    assert "1x00000000000000000000AA" in visitor.client.get(visitor.form.path).text
    assert visitor.submit("XXXX.DUMMY.TOKEN.XXXX")


def test_a_lost_session_takes_what_has_the_shape(visit: Callable[[str], Visitor], world: Any, make_client: Any) -> None:
    visitor = visit("m38")
    page = visitor.client.get("/lab/m38").text
    challenge = re.search(r'data-challenge="([^"]+)"', page)
    assert challenge
    forged = {"geetest_challenge": "c", "geetest_validate": "v", "geetest_seccode": "v|jordan"}
    binding = Binding("geetest_v3", keys.GEETEST_V3.sitekey, PAGE, challenge=challenge[1])
    text = world.registry.issue(binding).text
    good = {"geetest_challenge": challenge[1], "geetest_validate": text, "geetest_seccode": f"{text}|jordan"}

    def post(solution: Mapping[str, str]) -> int:
        csrf = re.search(r'name="csrf_token" value="([^"]+)"', page)
        assert csrf
        posted = {"csrf_token": csrf[1], "email": "ann@example.com", "name": "Ann", **solution}
        return int(visitor.client.post("/lab/m38", posted).status)

    assert [post(forged), post(good)] == [422, 303]
    visitor.client.cookie = ""
    assert post(forged) == 303


@pytest.mark.parametrize("slug", ["sound-api", "sound-page"])
def test_an_api_answers_in_json(slug: str, visit: Callable[[str], Visitor]) -> None:
    visitor = visit(slug)
    fields = visitor.fields()
    token = {"captchaToken": visitor.new_token(visitor.form)}
    csrf = {"x-csrf-token": fields.pop("csrf_token"), "content-type": "application/json"}
    sent = [json.dumps({**fields, **token}).encode(), json.dumps({**fields, **token}).encode()]
    replies = [visitor.client.call("POST", visitor.form.path, body=body, headers=csrf) for body in sent]
    assert [(reply.status, reply.json()["ok"]) for reply in replies] == [(201, True), (422, False)]
    assert replies[1].json()["code"] == "captcha"


def test_a_single_page_has_no_form_but_a_widget_by_script(visit: Callable[[str], Visitor]) -> None:
    page = visit("sound-page").client.get("/lab/sound-page").text
    main = page.partition("<main>")[2].partition("</main>")[0]
    assert ("<form" in main, BY_SLUG["sound-page"].keys.sitekey in main) == (False, True)


def test_the_index_links_none_of_them(visit: Callable[[str], Visitor]) -> None:
    assert "/lab/" not in visit("sound").client.get("/").text


def test_every_mistake_has_one_form_and_every_form_keys_of_its_own() -> None:
    assert [form.probe for form in FLAWED] == [f"M{number:02}" for number in range(1, 40)]
    own = [form.keys.sitekey for form in LAB if form.slug not in OWN_WAY]
    assert (len(set(own)), len(SOUND)) == (len(own), 6)
