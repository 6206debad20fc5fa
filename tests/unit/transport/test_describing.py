from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from requests import PreparedRequest, Request

from pytest_captcha_qa.model.evidence import Exchange
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.transport import NO_PAYLOAD, File, Payload, Reply, json_body, multipart, urlencoded
from pytest_captcha_qa.transport.describing import MOST_FIELDS, described

URL = Url.parse("https://shop.example/signup")
TOKEN = "03AGdB-" + "x" * 300


def request(payload: Payload = NO_PAYLOAD, headers: Mapping[str, str] | None = None) -> PreparedRequest:
    sent = {**payload.headers, **(headers or {})}
    return Request("POST", str(URL), headers=sent, data=payload.body).prepare()


def reply(status: int = 200, body: bytes = b"", **headers: str) -> Reply:
    return Reply(status, URL, {name.replace("_", "-"): value for name, value in headers.items()}, body)


def of(payload: Payload, headers: Mapping[str, str] | None = None) -> Exchange:
    return described(request(payload, headers), URL, reply(), marks=["X-Run"])


PAIRS = [("email", "ada@example.test"), ("g-recaptcha-response", TOKEN)]
PLAIN = Payload("".join(f"{name}={value}\r\n" for name, value in PAIRS).encode(), {"Content-Type": "text/plain"})


@pytest.mark.parametrize(
    "payload", [urlencoded(PAIRS), multipart(PAIRS), PLAIN], ids=["urlencoded", "multipart", "plain"]
)
def test_of_what_was_posted_names_and_lengths_are_told(payload: Payload) -> None:
    assert of(payload).fields == (("email", 16), ("g-recaptcha-response", 307))


def test_the_values_of_a_json_body_are_told_by_path_and_length() -> None:
    body = {
        "variables": {"input": {"captchaToken": TOKEN, "tags": ["a", "bc"], "age": 7, "more": {}}},
        "query": "mutation",
    }
    assert of(json_body(body)).fields == (
        ("variables.input.captchaToken", 307),
        ("variables.input.tags.0", 1),
        ("variables.input.tags.1", 2),
        ("variables.input.age", 1),
        ("variables.input.more", 2),
        ("query", 8),
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["application/json", "application/octet-stream"])
def test_a_body_that_cannot_be_read_is_told_as_one_field(kind: str) -> None:
    assert of(Payload(b"{half", {"Content-Type": kind})).fields == (("(body)", 5),)


def test_of_a_form_that_is_sent_by_get_the_names_in_the_query_are_told() -> None:
    got = Request("GET", "https://shop.example/search?q=abc&token=" + TOKEN).prepare()
    assert described(got, URL, reply()).fields == (("q", 3), ("token", 307))


def test_the_names_in_the_address_of_a_post_are_told_too() -> None:
    sent = Request("POST", "https://shop.example/signup?invite=s3cret-invitation", data={"a": "b"}).prepare()
    told = described(sent, URL, reply())
    assert (told.fields, told.secrets) == ((("invite", 17), ("a", 1)), ("s3cret-invitation",))


def test_of_a_large_body_the_beginning_is_looked_at() -> None:
    file = File("photo", "photo.jpg", b"x" * 200_000)
    fields = of(multipart([("email", "ada@example.test")], [file])).fields
    assert fields[0] == ("email", 16)
    assert fields[-1][0] == "(whole body)"
    assert fields[-1][1] > 200_000


def test_a_long_value_is_a_secret_by_its_beginning() -> None:
    [secret] = of(urlencoded([("essay", "y" * 60_000)])).secrets
    assert secret == "y" * 8192


def test_a_body_of_many_fields_is_bounded() -> None:
    found = of(urlencoded([("n" * 100, "v")] * 500)).fields
    assert len(found) == MOST_FIELDS
    assert {len(name) for name, _ in found} == {80}


def test_headers_are_shown_by_allow_list_and_the_rest_is_secret() -> None:
    headers = {
        "User-Agent": "qa",
        "Accept": "text/html",
        "X-Run": "nightly-7",
        "Referer": str(URL),
        "Cookie": "sid=0123456789; lang=en",
        "Authorization": "Basic cWE6aHVudGVyMg==",
        "X-Gate": "open-sesame",
        "Accept-Language": "en-US",
    }
    told = of(urlencoded(PAIRS), headers)
    shown = {name: value for name, value in told.headers.items() if value is not None}
    kind = "application/x-www-form-urlencoded"
    assert shown == {"User-Agent": "qa", "Accept": "text/html", "X-Run": "nightly-7", "Content-Type": kind}
    assert {"Cookie", "Authorization", "X-Gate", "Referer"} <= told.headers.keys()
    secret = {"0123456789", "cWE6aHVudGVyMg==", "open-sesame", TOKEN, "ada@example.test"}
    assert set(told.secrets) == secret


def test_cookies_of_the_answer_are_secret_too() -> None:
    told = described(request(), URL, reply(), cookies=["session-of-nine", "en"])
    assert told.secrets == ("session-of-nine",)


def test_an_answer_is_told_with_its_target_but_no_query() -> None:
    told = described(
        request(),
        URL,
        reply(303, Location="/welcome?ticket=s3cret", Set_Cookie="sid=1", Content_Type="text/html; charset=utf-8"),
    )
    assert (told.status, told.answer_headers) == (
        303, {"content-type": "text/html", "location": "https://shop.example/welcome"},
    )  # fmt: skip


def test_a_target_that_is_no_address_is_not_repeated() -> None:
    told = described(request(), URL, reply(302, Location="https://user:pass@evil.example/"))
    assert told.answer_headers["location"] == "an address that is refused"


def test_a_request_without_answer_tells_why() -> None:
    told = described(request(), URL, "the connection was refused")
    assert (told.status, told.why, told.text, told.answer_headers) == (None, "the connection was refused", "", {})


def test_it_prints_no_value() -> None:
    told = of(urlencoded(PAIRS))
    assert repr(told) == "<Exchange POST https://shop.example/signup 200>"
    assert json.dumps(PAIRS[0][1]) not in repr(told)
