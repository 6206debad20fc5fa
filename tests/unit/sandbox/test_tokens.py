from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pytest_captcha_qa.sandbox.binding import Binding
from pytest_captcha_qa.sandbox.tokens import IssuedToken, TokenFault


def redeem(world: Any, text: str, **options: Any) -> IssuedToken | TokenFault:
    return world.registry.redeem(text, types=("turnstile",), **options)


def test_a_token_is_redeemed_once(world: Any) -> None:
    text = world.issue("turnstile", "site-a")
    assert isinstance(redeem(world, text), IssuedToken)
    assert redeem(world, text) is TokenFault.USED


def test_a_token_nobody_issued_is_unknown(world: Any) -> None:
    assert redeem(world, "0.c4ptchaqaSANDBOXinvented") is TokenFault.UNKNOWN


def test_a_token_of_another_type_is_unknown_and_not_used_up(world: Any) -> None:
    text = world.issue("recaptcha_v2", "site-a")
    assert redeem(world, text) is TokenFault.UNKNOWN
    assert world.registry.find(text).used is False


def test_a_token_holds_for_its_own_sitekey_only(world: Any) -> None:
    text = world.issue("turnstile", "site-a")
    assert redeem(world, text, sitekey="site-b") is TokenFault.OTHER_KEY
    assert isinstance(redeem(world, text, sitekey="site-a"), IssuedToken)


@pytest.mark.parametrize(
    ("type_", "lifetime"),
    [
        ("recaptcha_v2", 120),
        ("recaptcha_v2_invisible", 120),
        ("recaptcha_v3", 120),
        ("turnstile", 300),
        ("recaptcha_enterprise", 120),
        ("hcaptcha", 120),
        ("geetest_v3", 60),
        ("geetest_v4", 60),
        ("friendly_v2", 60),
    ],
)
def test_a_token_expires_at_the_end_of_its_types_life(world: Any, type_: str, lifetime: int) -> None:
    fresh, late = world.issue(type_, "site-a"), world.issue(type_, "site-a")
    world.clock.advance(lifetime - 0.1)
    assert isinstance(world.registry.redeem(fresh, types=(type_,)), IssuedToken)
    world.clock.advance(0.1)
    assert world.registry.redeem(late, types=(type_,)) is TokenFault.EXPIRED


def test_the_life_of_a_token_counts_from_the_moment_given(world: Any) -> None:
    binding = Binding("turnstile", "site-a", "http://localhost/")
    token = world.registry.issue(binding, issued_at=world.clock() - 299)
    world.clock.advance(1)
    assert redeem(world, token.text) is TokenFault.EXPIRED


def test_only_the_first_retry_key_redeems_again(world: Any) -> None:
    text = world.issue("turnstile", "site-a")
    assert isinstance(redeem(world, text, retry_key="one"), IssuedToken)
    assert isinstance(redeem(world, text, retry_key="one"), IssuedToken)
    assert redeem(world, text, retry_key="two") is TokenFault.USED


def test_a_retry_key_that_came_late_changes_nothing(world: Any) -> None:
    text = world.issue("turnstile", "site-a")
    redeem(world, text)
    assert redeem(world, text, retry_key="one") is TokenFault.USED


def test_a_challenge_is_spent_by_the_token_issued_for_it(world: Any) -> None:
    assert not world.registry.challenge_is_spent("c" * 32)
    world.issue("geetest_v3", "site-a", challenge="c" * 32)
    assert world.registry.challenge_is_spent("c" * 32)


def test_the_issue_time_is_told_in_wall_clock(world: Any) -> None:
    token = world.registry.find(world.issue("turnstile", "site-a"))
    world.clock.advance(30)
    age = datetime.now(UTC) - world.registry.issued_time(token)
    assert abs(age - timedelta(seconds=30)) < timedelta(seconds=5)


@pytest.mark.parametrize(
    ("page", "hostname"),
    [("http://localhost:81/x", "localhost"), ("http://[::1]:81/", "::1"), ("nonsense", "")],
)
def test_the_hostname_is_the_pages(page: str, hostname: str) -> None:
    assert Binding("turnstile", "site-a", page).hostname == hostname
