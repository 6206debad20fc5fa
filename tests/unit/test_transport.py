from __future__ import annotations

import errno
import json
import logging
from email.message import Message
from types import ModuleType

import pytest
import requests.cookies
import requests.exceptions
import urllib3.exceptions
from hypothesis import example, given, settings
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import ScopeDenied, TransportError
from pytest_captcha_qa.model.url import Origin, Url
from pytest_captcha_qa.scope import fake_grant
from pytest_captcha_qa.transport import (
    KINDS,
    File,
    HttpAccess,
    HttpClient,
    Payload,
    ProofFetch,
    Reply,
    json_body,
    multipart,
    urlencoded,
)
from pytest_captcha_qa.transport.connections import QueryFilter, calling, readable_cookie
from pytest_captcha_qa.transport.faults import LIBRARY_ERRORS, kind_of, known_kind
from pytest_captcha_qa.transport.threads import ThreadsExhausted

PAGE = Url.parse("https://shop.example/signup?session=hidden")


_ROOTS = (requests.exceptions.RequestException, urllib3.exceptions.HTTPError)


def _errors_of(module: ModuleType) -> list[type[BaseException]]:
    """Return the errors a module defines, without warnings and without the root of its tree."""
    found = [it for it in vars(module).values() if isinstance(it, type) and issubclass(it, Exception)]
    return [it for it in found if it.__module__ == module.__name__ and it not in _ROOTS and not issubclass(it, Warning)]


_ALL = [*_errors_of(requests.exceptions), *_errors_of(urllib3.exceptions)]


@pytest.mark.parametrize("cls", _ALL, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_every_error_of_the_libraries_has_a_kind_of_its_own_choice(cls: type[BaseException]) -> None:
    assert issubclass(cls, LIBRARY_ERRORS)
    error = cls.__new__(cls)

    assert known_kind(error) in KINDS


def test_each_kind_but_those_found_by_the_client_itself_is_reached_by_some_error() -> None:
    reached = {known_kind(cls.__new__(cls)) for cls in _ALL}

    assert reached == set(KINDS) - {"too_large", "resources"}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (requests.exceptions.ConnectionError(ConnectionResetError("secret")), "reset"),
        (requests.exceptions.ConnectionError(ConnectionRefusedError()), "refused"),
        (requests.exceptions.ConnectionError(requests.exceptions.SSLError("bad")), "tls"),
        (urllib3.exceptions.ProxyError("no", OSError("407")), "proxy"),
        (OSError(113, "no route"), "reset"),
        (urllib3.exceptions.ProtocolError("x", OSError(errno.EMFILE, "too many open files")), "resources"),
        (urllib3.exceptions.ProtocolError("x", ThreadsExhausted("none")), "resources"),
    ],
)
def test_a_wrapped_cause_decides_the_kind(error: BaseException, kind: str) -> None:
    assert kind_of(error) == kind


def test_errors_that_wrap_each_other_in_a_circle_still_have_a_kind() -> None:
    first, second = KeyError("a"), OSError("b")
    first.__context__, second.__context__ = second, first

    assert kind_of(second) == "reset"


def _reply(body: bytes, content_type: str = "text/html", status: int = 200, **headers: str) -> Reply:
    return Reply(status, PAGE, CaseInsensitiveDict({"Content-Type": content_type, **headers}), body)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (_reply("é".encode("latin-1"), "text/html; charset=ISO-8859-1"), "é"),
        (_reply("é".encode(), "text/html"), "é"),
        (_reply("\ufeffé".encode(), "text/html"), "é"),
        (_reply("é".encode("utf-16"), "text/plain"), "é"),
        (_reply(b"<meta charset=windows-1251>\xcf"), "<meta charset=windows-1251>П"),
        (_reply(b'<meta http-equiv=x content="text/html; charset=koi8-r">\xd0'), None),
        (_reply(b"\xff", "text/plain; charset=utf-8"), "\ufffd"),
        (_reply(b"plain", "text/plain; charset=rot13"), "plain"),
        (_reply(b"plain", "text/plain; charset=hex"), "plain"),
        (_reply(b"plain", "text/plain; charset=iso-8859-99"), "plain"),
    ],
)
def test_text_is_decoded_by_header_mark_or_meta_and_never_fails(reply: Reply, text: str | None) -> None:
    assert reply.text == text if text is not None else reply.text.endswith("п")


PAST = "Sun, 06 Nov 1994 08:49:37 GMT"
_LATIN = st.text(st.characters(max_codepoint=0xFF))
_CONTENT_TYPE = st.one_of(_LATIN, st.builds("text/html; charset={}".format, _LATIN))


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("12", 12.0),
        (" 0 ", 0.0),
        ("-5", 0.0),
        ("99999", 3600.0),
        ("soon", None),
        ("1e3", None),
        ("", None),
        (PAST, 0.0),
    ],
)
def test_a_site_says_when_it_wants_to_be_asked_again(header: str, seconds: float | None) -> None:
    assert _reply(b"", status=429, **{"Retry-After": header}).answer.retry_after == seconds
    assert _reply(b"", status=429).answer.retry_after is None


@given(
    status=st.integers(0, 999), content_type=_CONTENT_TYPE, location=_LATIN, body=st.binary(max_size=200), later=_LATIN
)
@example(status=302, content_type="text/html; charset", location="http://[", body=b"<meta charset=\xff>", later="")
@example(status=302, content_type="application/json", location="//", body=b"9" * 5000, later="9" * 5000)
def test_a_reply_can_be_read_whatever_its_headers_say(
    status: int, content_type: str, location: str, body: bytes, later: str
) -> None:
    reply = _reply(body, content_type, status, Location=location, **{"Retry-After": later})

    assert isinstance(reply.text, str)
    assert reply.answer.status == status
    assert reply.answer.json_value("a.0") is None


_ATTRIBUTE = st.tuples(
    st.sampled_from(["expires", "Max-Age", "Domain", "Path", "Port", "Version", "Secure", "HttpOnly", "é", ""]),
    st.sampled_from(["", "="]),
    st.one_of(_LATIN, st.sampled_from(["9" * 5000, "-1", "Fri, 31 Dec 9999 23:59:59 -2359", "nan", '"', "/"])),
).map("".join)
_COOKIE = st.lists(_ATTRIBUTE, max_size=5).map(lambda attributes: "; ".join(["a=b", *attributes]))


@settings(max_examples=300)
@given(line=st.one_of(_LATIN, _COOKIE))
@example(line="a=b; Max-Age")
def test_any_cookie_header_is_read_without_a_warning_of_the_library(line: str) -> None:
    told = Message()
    told["Set-Cookie"] = readable_cookie(line).replace("\r", "").replace("\n", "")
    jar = requests.cookies.RequestsCookieJar()
    request = requests.Request("GET", str(PAGE)).prepare()

    jar.extract_cookies(  # warnings are errors here
        requests.cookies.MockResponse(told),  # type: ignore[arg-type]
        requests.cookies.MockRequest(request),  # type: ignore[arg-type]
    )

    assert len(jar) <= 1


def test_a_reply_shows_neither_headers_nor_body_nor_query() -> None:
    shown = repr(_reply(b"hidden", SetCookie="hidden=1"))

    assert "hidden" not in shown
    assert "shop.example" in shown


@pytest.mark.parametrize(("status", "location"), [(200, None), (303, "/welcome"), (404, None)])
def test_only_a_redirect_has_a_location(status: int, location: str | None) -> None:
    assert _reply(b"", status=status, Location="/welcome").location == location


def test_urlencoded_keeps_order_and_repeated_names() -> None:
    payload = urlencoded([("b", "1 2"), ("a", "é"), ("b", "&")])

    assert payload.body == b"b=1+2&a=%C3%A9&b=%26"
    assert payload.headers["Content-Type"] == "application/x-www-form-urlencoded"


def test_urlencoded_writes_what_the_charset_lacks_as_a_reference() -> None:
    assert urlencoded([("a", "é€")], charset="latin-1").body == b"a=%E9%26%238364%3B"


def test_multipart_holds_fields_in_order_then_files() -> None:
    payload = multipart([("a", "1"), ("a", "2")], [File("f", "x.png", b"\x89PNG", "image/png")])

    body = payload.body or b""
    assert payload.headers["Content-Type"].startswith("multipart/form-data; boundary=")
    assert [body.index(it) for it in (b"\r\n\r\n1", b"\r\n\r\n2", b'filename="x.png"', b"\x89PNG")] == sorted(
        body.index(it) for it in (b"\r\n\r\n1", b"\r\n\r\n2", b'filename="x.png"', b"\x89PNG")
    )


def test_json_body_is_utf8() -> None:
    assert json.loads((json_body({"é": None}).body or b"").decode()) == {"é": None}


def test_a_payload_is_extended_without_changing_the_first() -> None:
    first = urlencoded([("a", "b")])

    second = first.having({"Referer": "x"}, cookies={"c": "d"}, user_agent="agent")

    assert second.body == first.body
    assert dict(second.headers) == {**first.headers, "Referer": "x"}
    assert (second.cookies, second.user_agent) == ({"c": "d"}, "agent")
    assert "Referer" not in first.headers


def test_neither_a_payload_nor_the_access_shows_its_secrets() -> None:
    payload = Payload(b"hidden", {"X": "hidden"}, {"c": "hidden"})
    access = HttpAccess({"X": "hidden"}, {"c": "hidden"}, ("hidden", "hidden"), proxy="http://u:hidden@p:1")

    assert "hidden" not in repr(payload) + repr(access)


@pytest.mark.parametrize(
    ("method", "url", "covered"),
    [
        ("GET", "https://shop.example/.well-known/captcha-qa/k1.txt", True),
        ("POST", "https://shop.example/.well-known/captcha-qa/k1.txt", False),
        ("GET", "https://shop.example/.well-known/captcha-qa/k1.txt?a=b", False),
        ("GET", "https://shop.example/.well-known/captcha-qa/../../signup", False),
        ("GET", "https://shop.example/signup", False),
        ("GET", "https://other.example/.well-known/captcha-qa/k1.txt", False),
        ("GET", "http://shop.example/.well-known/captcha-qa/k1.txt", False),
    ],
)
def test_a_proof_fetch_covers_the_proof_of_its_origin_only(method: str, url: str, *, covered: bool) -> None:
    fetch = ProofFetch(Origin.parse("https://shop.example"))

    assert fetch.covers(method, Url.parse(url)) is covered


@pytest.mark.parametrize(
    ("grant", "reason"),
    [
        (ProofFetch(PAGE.origin), "grant_mismatch"),
        (fake_grant(PAGE.origin), "fake_grant"),
    ],
)
def test_nothing_is_sent_where_the_permission_does_not_reach(grant: object, reason: str) -> None:
    with pytest.raises(ScopeDenied) as denied:
        HttpClient().request("GET", PAGE, deadline=Deadline(5, what="the test"), grant=grant)  # type: ignore[arg-type]

    assert denied.value.reason == reason
    assert denied.value.__context__ is None


def test_without_any_time_left_nothing_is_sent() -> None:
    with pytest.raises(TransportError) as failure:
        HttpClient().request("GET", PAGE, deadline=Deadline(0, what="the test"), grant=None)

    assert (failure.value.kind, failure.value.sent) == ("timeout", False)
    assert "hidden" not in str(failure.value)


def test_sessions_do_not_share_cookies_and_origins_do_not_either() -> None:
    client = HttpClient()
    first, second = client.new_session(), client.new_session()
    one, other = Origin.parse("http://127.0.0.1:8001"), Origin.parse("http://127.0.0.1:8002")

    first.remember(one, {"session": "a"})

    assert first.cookies(one) == {"session": "a"}
    assert first.cookies(other) == second.cookies(one) == client.cookies(one) == {}


def _record(*args: object) -> logging.LogRecord:
    error = ValueError("hidden")
    return logging.LogRecord("urllib3.x", logging.DEBUG, "f", 1, "%s %s %s", args, (ValueError, error, None))


def test_records_about_our_calls_lose_queries_foreign_objects_and_tracebacks() -> None:
    record = _record("/res.php?key=hidden", 200, ValueError("hidden"))

    with calling(5, loopback=False):
        QueryFilter().filter(record)

    assert record.getMessage() == "/res.php 200 ValueError"
    assert record.exc_info is None


def test_records_about_other_peoples_calls_stay_as_they_are() -> None:
    record = _record("/a?b=c", 200, None)

    QueryFilter().filter(record)

    assert record.getMessage() == "/a?b=c 200 None"
