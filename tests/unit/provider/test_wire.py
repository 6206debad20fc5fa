from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider import wire
from pytest_captcha_qa.provider.codes import CODES
from pytest_captcha_qa.provider.dialects import CAPTCHAAI, Method

PAGE = Url.parse("https://shop.example/signup?session=hidden")


def _method(kind: CaptchaType) -> Method:
    method = CAPTCHAAI.methods[kind]
    assert method is not None
    return method


V2 = _method(CaptchaType.RECAPTCHA_V2)
GEETEST = _method(CaptchaType.GEETEST_V3)
GEETEST_V4 = _method(CaptchaType.GEETEST_V4)
IMAGE = _method(CaptchaType.IMAGE)


def _challenge(kind: CaptchaType, **more: Any) -> Challenge:
    return Challenge(kind, "site-key", PAGE, **more)


@pytest.mark.parametrize(
    ("challenge", "pairs"),
    [
        (
            _challenge(CaptchaType.RECAPTCHA_V2, action="ignored", data={"cookies": "never", "userAgent": "never"}),
            {"method": "userrecaptcha", "googlekey": "site-key"},
        ),
        (
            _challenge(CaptchaType.RECAPTCHA_V2_INVISIBLE),
            {"method": "userrecaptcha", "invisible": "1", "googlekey": "site-key"},
        ),
        (
            _challenge(CaptchaType.RECAPTCHA_V3, action="login", min_score=0.3),
            {
                "method": "userrecaptcha",
                "version": "v3",
                "googlekey": "site-key",
                "action": "login",
                "min_score": "0.3",
            },
        ),
        (
            _challenge(CaptchaType.RECAPTCHA_ENTERPRISE, action="login"),
            {"method": "userrecaptcha", "enterprise": "1", "googlekey": "site-key", "action": "login"},
        ),
        (
            _challenge(CaptchaType.TURNSTILE, action="login", cdata="c"),
            {"method": "turnstile", "sitekey": "site-key", "action": "login", "data": "c"},
        ),
        (
            _challenge(CaptchaType.GEETEST_V3, data={"gt": "site-key", "challenge": "once", "api_server": "never"}),
            {"method": "geetest", "gt": "site-key", "challenge": "once"},
        ),
        (_challenge(CaptchaType.GEETEST_V4), {"method": "geetest", "version": "4", "gt": "site-key"}),
        (
            _challenge(CaptchaType.FRIENDLY_V2),
            {"method": "friendly_captcha", "version": "v2", "sitekey": "site-key"},
        ),
    ],
)
def test_a_submit_says_what_the_type_needs_and_nothing_else(challenge: Challenge, pairs: dict[str, str]) -> None:
    sent = wire.submit_pairs(_method(challenge.type), challenge)

    assert dict(sent) == {**pairs, "pageurl": "https://shop.example/signup", "json": "1"}
    assert len(sent) == len(dict(sent))


def test_an_image_is_sent_as_its_body_without_the_page() -> None:
    sent = wire.submit_pairs(IMAGE, _challenge(CaptchaType.IMAGE, data={"image": "aGk="}))

    assert sent == [("method", "base64"), ("body", "aGk="), ("json", "1")]


@pytest.mark.parametrize(
    ("method", "challenge", "lacking"),
    [
        (V2, _challenge(CaptchaType.RECAPTCHA_V2), []),
        (V2, Challenge(CaptchaType.RECAPTCHA_V2, "", PAGE), ["googlekey"]),
        (GEETEST, _challenge(CaptchaType.GEETEST_V3), ["challenge"]),
        (IMAGE, _challenge(CaptchaType.IMAGE), ["body"]),
    ],
)
def test_required_parameters_without_a_value_are_named(
    method: Method, challenge: Challenge, lacking: list[str]
) -> None:
    assert wire.missing(method, challenge) == lacking


@pytest.mark.parametrize(
    ("text", "task_id"),
    [
        ("OK|3397637370", "3397637370"),
        ('{"status":1,"request":3397637370}', "3397637370"),
        ('{"status":1,"request":51555263943}', "51555263943"),
        ('{"status":1,"request":"3397637370"}', "3397637370"),
        ('{"status":"1","request":"a1b2-c3"}', "a1b2-c3"),
        (' {"status":1,"request":7}\r\n', "7"),
        ('{"status":1,"request":true}', None),
        ('{"status":1,"request":1.5}', None),
        ('{"status":1,"request":""}', None),
        ('{"status":1,"request":"two words"}', None),
        ('{"status":1,"request":null}', None),
        ('{"status":1,"request":{"id":1}}', None),
        ('{"status":1}', None),
        ("OK|OK|3397637370", "3397637370"),
        ('{"status":1,"request":"OK|3397637370"}', "3397637370"),
        ("OK|", None),
        ("OK|<html>", None),
    ],
)
def test_the_id_of_a_task_is_read_in_every_spelling(text: str, task_id: str | None) -> None:
    answer = wire.read_answer(text, CODES)

    assert isinstance(answer, wire.Good)
    assert wire.read_task_id(answer) == task_id


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_is_known_in_every_wrapping(code: str) -> None:
    wrappings = [
        code,
        f" {code}\n",
        json.dumps(code),
        json.dumps({"status": 0, "request": code}),
        json.dumps({"status": 0, "request": code, "error_text": "foreign words"}),
        json.dumps({"status": "0", "request": f" {code} "}),
        json.dumps({"status": 1, "request": code}),
        f"OK|{code}",
    ]

    assert [wire.read_answer(it, CODES) for it in wrappings] == [wire.Refusal(code)] * len(wrappings)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \r\n",
        "<html><body>502 Bad Gateway</body></html>",
        "ERROR_SOMETHING_NEW",
        "ERROR_ZERO_BALANCE and more",
        "xERROR_ZERO_BALANCE",
        "error_zero_balance",
        "CAPTCHA_NOT_READY",
        "OK",
        "OK_REPORT_RECORDED",
        '{"status":0,"request":"ERROR_SOMETHING_NEW"}',
        '{"status":0,"request":"03AFcWeA-a-token"}',
        '{"status":0}',
        '{"status":2,"request":"x"}',
        '{"status":null,"request":"x"}',
        '{"request":"03AFcWeA-a-token"}',
        '{"error":"x","solution":{"token":"y"}}',
        "[]",
        "null",
        "123",
        '"text"',
        '{"status":1,',
        "[" * 100_000,
        '{"status":1,"request":' + "9" * 5000 + "}",
    ],
)
def test_what_is_neither_a_result_nor_a_known_code_is_noise(text: str) -> None:
    answer = wire.read_answer(text, CODES)

    assert isinstance(answer, wire.Noise)
    assert answer.what.startswith(("a ", "an ", "JSON "))


def _solution(body: object, method: Method) -> dict[str, str] | None:
    answer = wire.read_answer(body if isinstance(body, str) else json.dumps(body), CODES)
    assert isinstance(answer, wire.Good)
    found = wire.read_solution(answer, method)
    return None if found is None else dict(found.parts)


@pytest.mark.parametrize(
    ("body", "token"),
    [
        ("OK|03AF", "03AF"),
        ("OK|a|b|c", "a|b|c"),
        ("OK|OK|03AF", "03AF"),
        ({"status": 1, "request": "OK|03AF"}, "03AF"),
        ("OK|ERROR-in-a-token", "ERROR-in-a-token"),
        ("OK|xERROR_ZERO_BALANCEx", "xERROR_ZERO_BALANCEx"),
        ({"status": 1, "request": "03AF"}, "03AF"),
        ({"status": 1, "request": " 03AF\n"}, "03AF"),
        ({"status": 1, "result": "03AF"}, "03AF"),
        ({"status": 1, "request": "", "result": "03AF"}, "03AF"),
        ({"status": 1, "request": None, "solution": {"token": "03AF"}}, "03AF"),
        ({"status": 1, "request": {"token": "03AF"}}, "03AF"),
        ({"status": 1, "request": "first", "result": "second", "solution": {"token": "third"}}, "first"),
        ({"status": 1, "request": "two words"}, None),
        ({"status": 1, "request": "line\nbreak"}, None),
        ({"status": 1, "request": 5}, None),
        ({"status": 1, "request": ["03AF"]}, None),
        ({"status": 1, "request": True}, None),
        ({"status": 1}, None),
    ],
)
def test_a_token_is_found_where_any_service_puts_it(body: object, token: str | None) -> None:
    assert _solution(body, V2) == (None if token is None else {"token": token})


@pytest.mark.parametrize("code", ["ERROR_CAPTCHA_UNSOLVABLE", "IP_BANNED", "CAPCHA_NOT_READY", "ERROR_OF_TOMORROW"])
@pytest.mark.parametrize(
    "place",
    [
        lambda code: {"result": code},
        lambda code: {"request": "", "result": f" {code} "},
        lambda code: {"request": None, "solution": {"token": code}},
        lambda code: {"request": {"token": code}},
        lambda code: {"request": f"OK|{code}"},
        lambda code: {"request": f"{code}|0.00299"},
    ],
    ids=["result", "result beside request", "solution", "request", "text", "price"],
)
def test_a_code_in_the_place_of_a_token_is_no_token(code: str, place: Callable[[str], dict[str, Any]]) -> None:
    answer = wire.read_answer(json.dumps({"status": 1, **place(code)}), CODES)

    assert isinstance(answer, wire.Refusal if code in CODES else wire.Noise)


@pytest.mark.parametrize(
    ("answer", "text"),
    [("two words", "two words"), ("привет", "привет"), (2071, "2071"), (0, "0"), ("a\nb", None), (True, None)],
)
def test_the_text_of_an_image_may_have_words_in_any_script_or_be_a_number(answer: object, text: str | None) -> None:
    found = _solution({"status": 1, "request": answer}, IMAGE)

    assert found == (None if text is None else {"token": text})


PARTS = {"challenge": "c1", "validate": "v1", "seccode": "v1|jordan"}
PREFIXED = {f"geetest_{name}": value for name, value in PARTS.items()}


@pytest.mark.parametrize(
    "body",
    [
        {"status": 1, "request": PARTS},
        {"status": 1, "request": PREFIXED},
        {"status": 1, "request": json.dumps(PARTS)},
        {"status": 1, "request": json.dumps(PREFIXED)},
        {"status": 1, "solution": PREFIXED},
        "OK|challenge:c1,validate:v1,seccode:v1|jordan",
        "OK|" + json.dumps(PREFIXED),
        "OK|geetest_seccode:v1|jordan, geetest_validate:v1, geetest_challenge:c1",
    ],
)
def test_geetest_values_are_read_in_every_shape(body: object) -> None:
    assert _solution(body, GEETEST) == PARTS


@pytest.mark.parametrize(
    "body",
    [
        {"status": 1, "request": {"challenge": "c1", "validate": "v1"}},
        {"status": 1, "request": {**PARTS, "seccode": ""}},
        {"status": 1, "request": {**PARTS, "seccode": None}},
        {"status": 1, "request": {**PARTS, "validate": True}},
        {"status": 1, "request": "[]"},
        {"status": 1, "request": "challenge:c1"},
        {"status": 1, "request": 5},
        "OK|03AF",
    ],
)
def test_incomplete_geetest_values_are_no_solution(body: object) -> None:
    assert _solution(body, GEETEST) is None


def test_numbers_among_the_values_become_text() -> None:
    names = ("captcha_id", "lot_number", "pass_token", "captcha_output")
    values: dict[str, object] = {**dict.fromkeys(names, "x"), "gen_time": 1700000000}

    assert _solution({"status": 1, "request": values}, GEETEST_V4) == {**values, "gen_time": "1700000000"}


@pytest.mark.parametrize("name", ["useragent", "userAgent", "user_agent"])
@pytest.mark.parametrize("nested", [False, True])
def test_the_user_agent_of_a_solution_is_kept(name: str, *, nested: bool) -> None:
    body: dict[str, object] = {"status": 1, "request": "03AF", "solution": {}}
    (body["solution"] if nested else body)[name] = "Mozilla/5.0"  # type: ignore[index]

    found = wire.read_solution(wire.Good("03AF", body), V2)

    assert found is not None
    assert found.user_agent == "Mozilla/5.0"


@pytest.mark.parametrize("agent", ["", " ", 5, None, "line\r\nbreak", "é", ["x"], "x" * 501])
def test_a_user_agent_that_cannot_stand_in_a_header_is_left_out(agent: object) -> None:
    found = wire.read_solution(wire.Good("03AF", {"useragent": agent}), V2)

    assert found is not None
    assert found.user_agent is None


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ({"a": "b", "c": "d"}, {"a": "b", "c": "d"}),
        ("a=b; c=d=e", {"a": "b", "c": "d=e"}),
        ("a:b;c:d", {"a": "b", "c": "d"}),
        ([{"name": "a", "value": "b"}, "junk", {"value": "x"}], {"a": "b"}),
        ({"a": "x\r\ny", "b c": "x", "d": 5, "e": "x; f=g"}, {}),
        ("", {}),
        (5, {}),
    ],
)
def test_cookies_of_a_solution_are_kept_as_far_as_they_can_be_cookies(told: object, kept: dict[str, str]) -> None:
    for fields in ({"cookies": told}, {"solution": {"cookies": told}}):
        found = wire.read_solution(wire.Good("03AF", fields), V2)
        assert found is not None
        assert dict(found.cookies) == kept


@pytest.mark.parametrize(
    ("value", "balance"),
    [
        ("12.5", 12.5),
        (" 0 ", 0.0),
        ("-0.10", -0.1),
        (3, 3.0),
        (3.25, 3.25),
        ("1e5", None),
        ("", None),
        (None, None),
        (True, None),
        ("nan", None),
        (float("inf"), None),
        ([1], None),
    ],
)
def test_a_balance_is_a_plain_decimal(value: object, balance: float | None) -> None:
    assert wire.read_decimal(value) == balance


@pytest.mark.parametrize(
    ("fields", "threads"),
    [
        ({"threads": "5", "working_threads": "2"}, (5, 2)),
        ({"threads": 5, "working_threads": 0}, (5, 0)),
        ({"threads": 5}, None),
        ({"threads": "-1", "working_threads": 0}, None),
        ({"threads": {}, "working_threads": 0}, None),
    ],
)
def test_threads_are_numbers_or_numbers_as_text(fields: dict[str, object], threads: tuple[int, int] | None) -> None:
    answer = wire.read_answer(json.dumps(fields), CODES)

    assert isinstance(answer, wire.Good)
    assert wire.read_threads(answer) == threads


def test_no_answer_shows_a_token() -> None:
    answer = wire.read_answer('{"status":1,"request":"hidden"}', CODES)

    assert "hidden" not in repr(answer)
