from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest

from pytest_captcha_qa.sandbox import altcha

KEY, NOW = "hmac-key-of-the-site", 1_800_000_000.0


def payload(**changes: Any) -> str:
    told = json.loads(base64.b64decode(altcha.solved(altcha.new_challenge(KEY, expires=NOW + 60))))
    return base64.b64encode(json.dumps({**told, **changes}).encode()).decode()


def test_a_solved_challenge_is_verified_and_named() -> None:
    challenge = altcha.new_challenge(KEY, expires=NOW + 60)
    assert altcha.verified(altcha.solved(challenge), KEY, now=NOW) == challenge["challenge"]


def test_the_payload_is_the_formats_own_with_the_mark_in_front() -> None:
    challenge = altcha.new_challenge(KEY, expires=NOW + 60)
    text = altcha.solved(challenge)
    told = json.loads(base64.b64decode(text))
    assert text.startswith("eyJtYXJrIjoiYzRwdGNoYXFhU0FOREJPWCIs")
    assert set(told) == {"mark", "algorithm", "challenge", "salt", "signature", "number"}
    assert hashlib.sha256(f"{told['salt']}{told['number']}".encode()).hexdigest() == challenge["challenge"]


def test_a_challenge_holds_until_it_expires() -> None:
    text = altcha.solved(altcha.new_challenge(KEY, expires=NOW))
    assert altcha.verified(text, KEY, now=NOW - 1)
    assert altcha.verified(text, KEY, now=NOW) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"mark": "none"},
        {"number": -1},
        {"number": "1"},
        {"number": True},
        {"algorithm": "SHA-1"},
        {"signature": "0" * 64},
        {"signature": None},
        {"challenge": "é"},
        {"salt": "other?expires=1900000000&"},
    ],
    ids=str,
)
def test_a_payload_with_anything_else_in_it_is_refused(changes: dict[str, Any]) -> None:
    assert altcha.verified(payload(**changes), KEY, now=NOW) is None


@pytest.mark.parametrize("text", ["", "!", "bnVsbA==", "W10=", "e30=", "eyJtYXJrIg=="], ids=str)
def test_what_is_no_payload_is_refused(text: str) -> None:
    assert altcha.verified(text, KEY, now=NOW) is None


def test_no_digit_of_the_number_passes_for_one_of_the_expiry() -> None:
    told = json.loads(base64.b64decode(payload()))
    number = str(told["number"]).zfill(2)
    spliced = {"salt": f"{told['salt'].rstrip('&')}{number[0]}", "number": int(number[1:])}
    assert altcha.verified(payload(**spliced), KEY, now=NOW + 3600) is None
    assert told["salt"].endswith("&")


def test_the_signature_of_another_site_is_refused() -> None:
    assert altcha.verified(payload(), "another-key", now=NOW) is None


@pytest.mark.parametrize(
    "changes", [{"algorithm": "ARGON2ID"}, {"salt": 1}, {"maxnumber": -1}, {"challenge": "0" * 64}]
)
def test_what_no_number_solves_is_unsolvable(changes: dict[str, Any]) -> None:
    with pytest.raises(altcha.Unsolvable):
        altcha.solved({**altcha.new_challenge(KEY, expires=NOW), **changes})
