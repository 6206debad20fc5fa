"""What a browser would send for a form."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_captcha_qa.errors import ConfigError, PageError, ScopeDenied
from pytest_captcha_qa.forms.entries import Delivery, delivery, encoded, filled, form_data, without
from pytest_captcha_qa.forms.reading import read_page
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.transport import File

URL = Url.parse("https://shop.example/signup?utm=1")
SIGNUP = [("csrf_token", "of-the-signup"), ("email", ""), ("name", ""), ("password", "")]
URLENCODED = "application/x-www-form-urlencoded"


@pytest.fixture
def read(html, spec):
    return lambda page, kind=CaptchaType.TURNSTILE: read_page(html(page), URL, spec(kind))


def test_only_controls_that_a_browser_sends_are_sent(read):
    assert form_data(read("controls")).entries == [
        ("csrf_token", "of-the-signup"),
        ("email", ""),
        ("in_legend", "1"),
        ("news", "on"),
        ("plan", "pro"),
        ("country", "de"),
        ("langs", "de"),
        ("langs", "en"),
        ("about", "first\nsecond"),
        ("go", "1"),
    ]


@pytest.mark.parametrize(
    ("page", "kind", "entries"),
    [
        (
            "nested_tables",
            CaptchaType.RECAPTCHA_V2,
            [("csrf_token", "of-the-signup"), ("email", ""), ("name", ""), ("go", "1")],
        ),
        (
            "form_opened_in_cell",
            CaptchaType.RECAPTCHA_V2,
            [("csrf_token", "of-the-signup"), ("email", ""), ("go", "1")],
        ),
        (
            "form_in_form",
            CaptchaType.RECAPTCHA_V2,
            [("csrf_token", "of-the-signup"), ("email", ""), ("go", "1")],
        ),
        (
            "form_attributes",
            CaptchaType.RECAPTCHA_V2,
            [("csrf_token", "of-the-signup"), ("email", ""), ("name", ""), ("go", "1")],
        ),
        (
            "uppercase",
            CaptchaType.RECAPTCHA_V2,
            [("csrf_token", "of-the-signup"), ("email", ""), ("go", "Send")],
        ),
        (
            "image_button",
            CaptchaType.TURNSTILE,
            [*SIGNUP, ("go.x", "0"), ("go.y", "0")],
        ),
        (
            "button_disabled",
            CaptchaType.TURNSTILE,
            [*SIGNUP, ("go", "1")],
        ),
    ],
)
def test_hidden_fields_and_the_button_of_the_right_form_are_sent(read, page, kind, entries):
    assert form_data(read(page, kind)).entries == entries


@pytest.mark.parametrize(
    ("buttons", "pressed"),
    [
        ("<button name=a value=1>", [("a", "1")]),
        ("<button type=odd name=a value=1>", [("a", "1")]),
        ("<button type=Reset name=a value=1><input type=SUBMIT name=b value=2>", [("b", "2")]),
        ("<input type=submit name=a value=1><button name=b value=2>", [("a", "1")]),
        ("<fieldset disabled><button name=a></button></fieldset><button name=b value=2>", [("b", "2")]),
        ("<button value=1>", []),
        ("<button name='\x1b[31m' value='\x07'>", [("\x1b[31m", "\x07")]),
        ("<input type=image name='\x1b'>", [("\x1b.x", "0"), ("\x1b.y", "0")]),
        ("", []),
    ],
)
def test_the_first_submit_button_is_pressed(spec, buttons, pressed):
    widget = '<div class="cf-turnstile" data-sitekey="0x4AAAAAAASANDBOXlogin01"></div>'
    page = f"<form method=post>{widget}{buttons}</form>"

    assert form_data(read_page(page, URL, spec())).entries == pressed


def test_reading_a_form_twice_gives_the_same_entries(read):
    reading = read("controls")

    assert form_data(reading) == form_data(reading)


@pytest.mark.parametrize(
    ("page", "kind", "method", "target"),
    [
        ("turnstile", CaptchaType.TURNSTILE, "POST", "https://shop.example/signup"),
        ("get_form", CaptchaType.TURNSTILE, "GET", "https://shop.example/signup?dropped=1"),
        ("no_action", CaptchaType.TURNSTILE, "POST", "https://shop.example/signup?utm=1"),
        ("base_relative", CaptchaType.TURNSTILE, "POST", "https://shop.example/app/signup"),
        ("base_off_origin", CaptchaType.TURNSTILE, "POST", "https://elsewhere.example/signup"),
        ("action_protocol_relative", CaptchaType.TURNSTILE, "POST", "https://elsewhere.example/signup"),
        ("form_attributes", CaptchaType.RECAPTCHA_V2, "POST", "https://shop.example/signup/v2?step=1"),
        ("uppercase", CaptchaType.RECAPTCHA_V2, "POST", "https://shop.example/signup"),
    ],
)
def test_method_and_target_are_those_of_the_button_or_the_form(read, page, kind, method, target):
    how = delivery(read(page, kind), charset="utf-8")

    assert (how.method, str(how.target)) == (method, target)


def test_entities_in_an_action_are_resolved_as_browsers_do(read):
    target = delivery(read("action_entities"), charset="utf-8").target

    assert str(target) == "https://shop.example/signup?a=1&b=%222%22%E2%9F%A8=de"


@pytest.mark.parametrize(
    ("page", "error", "words"),
    [
        ("action_javascript", ConfigError, "has no address as its action but javascript:"),
        ("action_data", ConfigError, "has no address as its action but data:"),
        ("action_user_info", ScopeDenied, "user info"),
        ("action_backslash", ScopeDenied, "a backslash"),
        ("dialog", PageError, "belongs to a dialog"),
    ],
)
def test_a_form_that_cannot_be_sent_says_why(read, page, error, words):
    with pytest.raises(error, match=words) as caught:
        delivery(read(page), charset="utf-8")

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("accepted", "of_page", "used"),
    [
        (None, "utf-8", "utf-8"),
        (None, "windows-1251", "cp1251"),
        (None, "utf-16", "utf-8"),
        (None, "iso-8859-1", "cp1252"),
        ("utf-8", "windows-1251", "utf-8"),
        ("no-such-set, koi8-r", "utf-8", "koi8-r"),
        (None, "no-such-set", "utf-8"),
    ],
)
def test_the_character_set_is_the_one_the_form_accepts_or_the_page_has(read, accepted, of_page, used):
    reading = read("turnstile")
    if accepted is not None:
        reading.form.set("accept-charset", accepted)

    assert delivery(reading, charset=of_page).charset == used


def _delivery(method: str = "POST", enctype: str = URLENCODED, charset: str = "utf-8") -> Delivery:
    return Delivery(method, Url.parse("https://shop.example/s?old=1"), enctype, charset)


def test_a_post_body_is_urlencoded_in_the_forms_character_set():
    target, payload = encoded(_delivery(charset="cp1251"), [("имя", "Я\n€ \u4e2d")], ())

    assert str(target) == "https://shop.example/s?old=1"
    assert payload.headers["Content-Type"] == URLENCODED
    assert payload.body == b"%E8%EC%FF=%DF%0D%0A%88+%26%2320013%3B"


def test_a_get_form_replaces_the_query_of_its_target():
    target, payload = encoded(_delivery("GET"), [("q", "a b"), ("q", "&")], ())

    assert str(target) == "https://shop.example/s?q=a+b&q=%26"
    assert payload.body is None


def test_a_plain_text_form_is_sent_in_lines():
    _, payload = encoded(_delivery(enctype="text/plain"), [("a", "1"), ("b", "x y")], ())

    assert (payload.body, payload.headers["Content-Type"]) == (b"a=1\r\nb=x y\r\n", "text/plain")


def test_a_multipart_form_sends_empty_file_inputs_as_browsers_do(read):
    reading = read("multipart")
    own = form_data(reading)
    _, payload = encoded(delivery(reading, charset="utf-8"), own.entries, [File(name, "", b"") for name in own.files])

    assert own.files == ("avatar",)
    assert payload.headers["Content-Type"].startswith("multipart/form-data; boundary=")
    assert payload.body is not None
    assert b'name="csrf_token"\r\n\r\nof-the-signup\r\n' in payload.body
    assert b'name="avatar"; filename=""\r\nContent-Type: application/octet-stream\r\n\r\n\r\n' in payload.body
    assert payload.body.count(b'name="avatar"') == 1


def test_given_values_take_the_place_of_the_pages_own():
    own = [("a", "1"), ("b", "2"), ("a", "3")]

    assert filled(own, {"a": "x", "c": "new"}) == [("a", "x"), ("b", "2"), ("c", "new")]
    assert without(own, {"a": "token"}) == [("b", "2")]


@given(st.lists(st.tuples(st.text(min_size=1, max_size=5), st.text(max_size=10)), max_size=6))
def test_what_is_encoded_can_be_decoded_again(pairs):
    clean = [(n.encode(errors="replace").decode(), v.encode(errors="replace").decode()) for n, v in pairs]
    _, payload = encoded(_delivery(), clean, ())

    def lines(text: str) -> str:
        return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")

    assert parse_qsl((payload.body or b"").decode(), keep_blank_values=True) == [
        (lines(name), lines(value)) for name, value in clean
    ]
