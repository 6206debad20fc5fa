from __future__ import annotations

import re
from random import Random
from statistics import median

import pytest

from pytest_captcha_qa.sandbox.types import TYPES, SandboxType


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("recaptcha_v2", r"03AFcWeAc4ptchaqaSANDBOX[\w-]+"),
        ("recaptcha_v2_invisible", r"03AFcWeAc4ptchaqaSANDBOX[\w-]+"),
        ("recaptcha_v3", r"03AFcWeAc4ptchaqaSANDBOX[\w-]+"),
        ("turnstile", r"0\.c4ptchaqaSANDBOX[\w-]+"),
        ("geetest_v3", r"5a9db0c4ca7a[0-9a-f]{20}"),
    ],
)
def test_every_answer_carries_the_mark_inside_the_vendors_shape(name: str, shape: str) -> None:
    rng = Random(7)
    assert all(re.fullmatch(shape, TYPES[name].mint(rng)) for _ in range(50))


@pytest.mark.parametrize(
    ("name", "shortest", "longest"),
    [("recaptcha_v2", 400, 600), ("recaptcha_v3", 400, 600), ("turnstile", 300, 500)],
)
def test_string_tokens_have_the_vendors_length(name: str, shortest: int, longest: int) -> None:
    rng = Random(7)
    lengths = {len(TYPES[name].mint(rng)) for _ in range(200)}
    assert shortest <= min(lengths) < max(lengths) <= longest


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
