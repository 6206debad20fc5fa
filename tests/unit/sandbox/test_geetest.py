from __future__ import annotations

import hmac
from typing import Any

import pytest

from pytest_captcha_qa.sandbox import keys
from pytest_captcha_qa.sandbox.types import TYPES

V4 = "/validate"


@pytest.fixture
def v4(world: Any, vendor: Any) -> Any:
    """Ask about a solution of GeeTest v4, signed as a site does."""

    def ask(lot: str | None = None, **changes: str) -> Any:
        text = lot or world.issue("geetest_v4", keys.GEETEST_V4.sitekey)
        parts = dict(TYPES["geetest_v4"].parts(text, world.registry.find(text).binding))  # type: ignore[misc]
        signed = hmac.new(keys.GEETEST_V4.secret.encode(), text.encode(), "sha256").hexdigest()
        return vendor.post(V4, {**parts, "sign_token": signed, **changes}).json()

    return ask


def test_geetest_v4_confirms_a_signed_solution_once(world: Any, v4: Any) -> None:
    lot = world.issue("geetest_v4", keys.GEETEST_V4.sitekey)
    assert v4(lot) | {"captcha_args": None} == {
        "status": "success",
        "result": "success",
        "reason": "",
        "captcha_args": None,
    }
    assert v4(lot)["code"] == "-50003"


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({"captcha_id": ""}, {"code": "-50101"}),
        ({"sign_token": "0" * 64}, {"result": "fail", "reason": "sign_token error"}),
        ({"sign_token": ""}, {"result": "fail", "reason": "sign_token error"}),
        ({"pass_token": "0" * 64}, {"result": "fail", "reason": "pass_token error"}),
        ({"gen_time": "1"}, {"result": "fail", "reason": "pass_token error"}),
        ({"captcha_output": ""}, {"result": "fail", "reason": "pass_token error"}),
        ({"captcha_id": "f" * 32}, {"code": "-50304"}),
    ],
)
def test_geetest_v4_refuses_whatever_was_changed(v4: Any, changes: dict[str, str], answer: dict[str, str]) -> None:
    assert answer.items() <= v4(**changes).items()


def test_geetest_v4_knows_no_lot_number_of_another_type(world: Any, vendor: Any) -> None:
    for lot in (world.issue("turnstile", keys.GEETEST_V4.sitekey), "made-up"):
        signed = hmac.new(keys.GEETEST_V4.secret.encode(), lot.encode(), "sha256").hexdigest()
        call = {"captcha_id": keys.GEETEST_V4.sitekey, "lot_number": lot, "sign_token": signed}
        assert vendor.post(V4, call).json()["code"] == "-50304"


def test_geetest_v4_says_that_a_solution_came_too_late(world: Any, v4: Any) -> None:
    lot = world.issue("geetest_v4", keys.GEETEST_V4.sitekey)
    world.clock.advance(61)
    assert v4(lot)["reason"] == "pass_token expire"
