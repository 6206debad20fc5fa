from __future__ import annotations

import asyncio

import pytest

from pytest_captcha_qa.sandbox.fetching import with_challenge
from pytest_captcha_qa.sandbox.tasks import Refused
from pytest_captcha_qa.sandbox.web import Fields


def fetched(**fields: str) -> Fields:
    return asyncio.run(with_challenge(Fields(tuple(fields.items()))))


def test_nothing_is_fetched_without_an_address_or_beside_a_challenge() -> None:
    assert fetched(method="altcha").get("challenge_json") == ""
    assert fetched(challenge_url="http://shop.example/", challenge_json="{}").get("challenge_json") == "{}"


@pytest.mark.parametrize(
    "address", ["http://shop.example/altcha", "https://127.0.0.1/", "file:///etc/passwd", "http://[::1", "altcha"]
)
def test_only_this_machine_is_asked(address: str) -> None:
    with pytest.raises(Refused, match="ERROR_BAD_PARAMETERS"):
        fetched(challenge_url=address)
