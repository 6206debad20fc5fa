from __future__ import annotations

import re
import time
from random import Random
from statistics import median

import pytest

from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.sandbox.binding import Binding
from pytest_captcha_qa.sandbox.tasks import RULES
from pytest_captcha_qa.sandbox.types import TYPES, SandboxType


def minted(name: str, rng: Random, **binding: str) -> str:
    return TYPES[name].mint(rng, Binding(name, "a-sitekey", "http://localhost/", **binding))


def test_the_sandbox_plays_every_type_of_the_harness() -> None:
    names = {str(kind) for kind in CaptchaType}
    assert set(TYPES) == names
    assert {rule.type for rule in RULES} == names


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("recaptcha_v2", r"03AFcWeAc4ptchaqaSANDBOX[\w-]+"),
        ("recaptcha_v2_invisible", r"03AFcWeAc4ptchaqaSANDBOX[\w-]+"),
        ("recaptcha_v3", r"03AFcWeAc4ptchaqaSANDBOX[\w-]+"),
        ("turnstile", r"0\.c4ptchaqaSANDBOX[\w-]+"),
        ("recaptcha_enterprise", r"03AFcWeAc4ptchaqaSANDBOX[\w-]+"),
        ("hcaptcha", r"P1_c4ptchaqaSANDBOX[\w-]+"),
        ("geetest_v3", r"5a9db0c4ca7a[0-9a-f]{20}"),
        ("geetest_v4", r"5a9db0c4ca7a[0-9a-f]{20}"),
        ("friendly_v2", r"AQQA\.c4ptchaqaSANDBOX[\w-]+"),
    ],
)
def test_every_answer_carries_the_mark_inside_the_vendors_shape(name: str, shape: str) -> None:
    rng = Random(7)
    assert all(re.fullmatch(shape, minted(name, rng)) for _ in range(50))


@pytest.mark.parametrize(
    ("name", "shortest", "longest"),
    [
        ("recaptcha_v2", 400, 600),
        ("recaptcha_v3", 400, 600),
        ("turnstile", 300, 500),
        ("hcaptcha", 4100, 4600),
        ("friendly_v2", 5900, 6200),
    ],
)
def test_string_tokens_have_the_vendors_length(name: str, shortest: int, longest: int) -> None:
    rng = Random(7)
    lengths = {len(minted(name, rng)) for _ in range(200)}
    assert shortest <= min(lengths) < max(lengths) <= longest


@pytest.mark.parametrize("name", ["altcha", "image"])
def test_an_answer_that_the_challenge_decides_is_given_as_it_is(name: str) -> None:
    assert minted(name, Random(7), answer="QATEST12345") == "QATEST12345"


def test_the_values_of_a_geetest_v4_answer_follow_from_its_lot_number() -> None:
    text = minted("geetest_v4", Random(7))
    make = TYPES["geetest_v4"].parts
    assert make is not None
    parts = make(text, Binding("geetest_v4", "an-id", "http://localhost/"))
    assert parts == make(text, Binding("geetest_v4", "an-id", "http://localhost/other"))
    assert (parts["captcha_id"], parts["lot_number"]) == ("an-id", text)
    assert abs(int(parts["gen_time"]) - time.time()) < 60
    assert len(parts["pass_token"]) == 64
    assert re.fullmatch(r"[\w-]{200,300}=*", parts["captcha_output"])


@pytest.mark.parametrize("facts", TYPES.values(), ids=TYPES)
def test_solve_times_scatter_around_the_median(facts: SandboxType) -> None:
    rng = Random(7)
    times = [facts.solve_seconds(rng) for _ in range(2000)]
    assert median(times) == pytest.approx(facts.median, rel=0.1)
    assert min(times) > 0
    assert max(times) > 2 * facts.median


def test_the_same_seed_draws_the_same_solve_times() -> None:
    first, second = Random(3), Random(3)
    facts = TYPES["turnstile"]
    assert [facts.solve_seconds(first) for _ in range(5)] == [facts.solve_seconds(second) for _ in range(5)]
