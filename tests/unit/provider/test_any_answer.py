"""Whatever a service answers, reading it ends soon, raises our own errors only, and makes no token of an error."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import CaptchaQAError
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider.codes import CODES
from pytest_captcha_qa.provider.dialects import DIALECTS, Dialect
from pytest_captcha_qa.provider.http import HttpProvider
from pytest_captcha_qa.transport import HttpClient, Reply

URL = Url.parse("http://127.0.0.1:9000")
KEY = "k3yOfThirtyTwoCharactersForTests"
QUICK = settings(max_examples=500, deadline=timedelta(seconds=5))
LONG = settings(max_examples=10_000, deadline=timedelta(seconds=5))


class OneReply(HttpClient):
    """Answers every request with its `reply`."""

    reply: Reply

    def request(self, *args: Any, **kwargs: Any) -> Reply:
        return self.reply


CLIENT = OneReply()


_NAMES = st.sampled_from(
    ["status", "request", "result", "solution", "token", "cookies", "useragent", "price", "threads", "working_threads"]
)
_WORDS = st.text() | st.sampled_from(sorted(CODES)) | st.sampled_from(["03AFtoken", "c:1,validate:2", KEY, "ERROR_NEW"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES | st.text(), inner, max_size=4),
    max_leaves=8,
)
_TEXT = (
    st.text()
    | _WORDS
    | _JSON.map(json.dumps)
    | _JSON.map(lambda value: json.dumps(json.dumps(value)))
    | st.builds("OK|{}".format, _WORDS)
    | st.builds(
        lambda value, more: json.dumps({"status": 1, "request": value, **more}), _JSON, st.dictionaries(_NAMES, _JSON)
    )
)
BODIES = st.binary() | _TEXT.map(lambda text: text.encode("utf-8", "surrogatepass"))
STATUSES = st.sampled_from([200, 200, 200, 204, 301, 401, 403, 429, 500, 503])
HEADERS = st.dictionaries(
    st.sampled_from(["Retry-After", "Content-Type", "Location", "Set-Cookie"]),
    st.text(st.characters(max_codepoint=0xFF)) | st.sampled_from(["text/html; charset=utf-16", "5", "-1", "nan"]),
)
ERRORS = (
    st.builds(lambda more: json.dumps({**more, "status": 0}), st.dictionaries(_NAMES, _JSON))
    | st.sampled_from(sorted(CODES))
    | st.builds("OK|{}".format, st.sampled_from(sorted(CODES)))
    | st.builds("<html>{}</html>".format, st.text())
    | st.builds("ERROR_{}".format, st.from_regex(r"[A-Z_]{1,20}\Z"))
)
CASES = st.sampled_from([(each, kind) for each in DIALECTS.values() for kind in each.types])


def read(body: bytes, status: int, headers: dict[str, str], case: tuple[Dialect, CaptchaType]) -> list[object]:
    """Return what every query makes of an answer: a result, or our own error."""
    dialect, kind = case
    CLIENT.reply = Reply(status, URL, CaseInsensitiveDict(headers), body)
    provider = HttpProvider(dialect, key=KEY, client=CLIENT, base_url=URL)
    challenge, deadline = Challenge(kind, "key", URL), Deadline(30, what="the test")
    found: list[object] = []
    for query in (
        lambda: provider.poll(challenge, "77", deadline),
        lambda: provider.balance(deadline),
        lambda: provider.threads(deadline),
        lambda: provider.report("77", good=False, deadline=deadline),
    ):
        try:
            found.append(query())
        except CaptchaQAError as error:
            found.append(error)
    return found


def check_any(body: bytes, status: int, headers: dict[str, str], case: tuple[Dialect, CaptchaType]) -> None:
    for found in read(body, status, headers, case):
        told = f"{found!r} {found}"
        assert KEY not in told
        if isinstance(found, CaptchaQAError):
            assert found.__context__ is None
            assert found.retry_after is None or 0 <= found.retry_after <= 3600


def check_error(text: str, status: int, case: tuple[Dialect, CaptchaType]) -> None:
    poll = read(text.encode("utf-8", "surrogatepass"), status, {}, case)[0]
    assert poll is None or isinstance(poll, CaptchaQAError)


@QUICK
@given(BODIES, STATUSES, HEADERS, CASES)
@example(b'{"status":1,"request":"\\ud800"}', 200, {}, (DIALECTS["captchaai"], CaptchaType.IMAGE))
@example(b"[" * 60_000, 200, {}, (DIALECTS["captchaai"], CaptchaType.GEETEST_V3))
@example(b'{"status":1,"request":' + b"9" * 5000 + b"}", 200, {}, (DIALECTS["capskip"], CaptchaType.ALTCHA))
@example(b"OK|" + b"a:b," * 15_000, 200, {}, (DIALECTS["captchaai"], CaptchaType.GEETEST_V4))
def test_no_answer_whatever_raises_anything_but_our_own_errors(
    body: bytes, status: int, headers: dict[str, str], case: tuple[Dialect, CaptchaType]
) -> None:
    check_any(body, status, headers, case)


@QUICK
@given(ERRORS, STATUSES, CASES)
def test_no_error_yields_a_token(text: str, status: int, case: tuple[Dialect, CaptchaType]) -> None:
    check_error(text, status, case)


@pytest.mark.soak
@LONG
@given(BODIES, STATUSES, HEADERS, CASES)
def test_ten_thousand_answers(
    body: bytes, status: int, headers: dict[str, str], case: tuple[Dialect, CaptchaType]
) -> None:
    check_any(body, status, headers, case)


@pytest.mark.soak
@LONG
@given(ERRORS, STATUSES, CASES)
def test_ten_thousand_errors(text: str, status: int, case: tuple[Dialect, CaptchaType]) -> None:
    check_error(text, status, case)
