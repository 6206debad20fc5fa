"""ALTCHA as its format defines it: a challenge signed by the site, a small proof of work, a payload.

The demo site uses version 1; of a team's own site the solver takes both versions.

Facts: reference/verification.md 1.5, from the documentation and libraries of ALTCHA.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qs

MARK = "c4ptchaqaSANDBOX"
"""Stands first in every payload the sandbox solves; verifiers pass over members they do not know."""

ALGORITHM = "SHA-256"
MOST_WORK = 3_000
"""The largest number of the sandbox's own challenges; a solve takes milliseconds."""
_MOST_TRIES = 200_000
_MOST_ROUNDS = 2_000_000
_SIGNED = ("algorithm", "challenge", "salt", "signature")
# What a number is appended to ends with it, so that none of its digits can pass for a digit of a parameter.
_END = "&"


class Unsolvable(Exception):
    """No number solves the challenge, or none that is looked for."""


def new_challenge(key: str, *, expires: float) -> dict[str, Any]:
    """Return a fresh signed challenge that holds until `expires`, in seconds since the epoch."""
    salt = f"{secrets.token_hex(12)}?expires={int(expires)}{_END}"
    hashed = _hashed(salt, secrets.randbelow(MOST_WORK + 1))
    signed = {"algorithm": ALGORITHM, "challenge": hashed, "maxnumber": MOST_WORK, "salt": salt}
    return {**signed, "signature": _signature(key, hashed)}


def solved(challenge: Mapping[str, Any]) -> str:
    """Return the marked payload that solves a challenge. Raises Unsolvable."""
    work = _derived if "parameters" in challenge else _counted
    try:
        payload = {"mark": MARK, **work(challenge)}
    except (KeyError, TypeError, ValueError, OverflowError) as exc:
        raise Unsolvable("this is no challenge of the kind the sandbox solves") from exc
    return base64.b64encode(json.dumps(payload, separators=(",", ":")).encode()).decode()


def _counted(challenge: Mapping[str, Any]) -> Mapping[str, Any]:
    """Solve version 1: find the number whose hash with the salt is the challenge."""
    if challenge["algorithm"] != ALGORITHM or not all(isinstance(challenge[name], str) for name in _SIGNED):
        raise Unsolvable("this is no challenge of the kind the sandbox solves")
    for number in range(min(int(challenge.get("maxnumber", _MOST_TRIES)), _MOST_TRIES) + 1):
        if _hashed(challenge["salt"], number) == challenge["challenge"]:
            return {**{name: challenge[name] for name in _SIGNED}, "number": number}
    raise Unsolvable("no number solves this challenge")


def _derived(challenge: Mapping[str, Any]) -> Mapping[str, Any]:
    """Solve version 2: find the counter whose derived key begins with the prefix."""
    told = challenge["parameters"]
    derive, cost = _DERIVATIONS[told["algorithm"]], max(1, int(told["cost"]))
    nonce, salt = bytes.fromhex(told["nonce"]), bytes.fromhex(told["salt"])
    length, prefix = int(told.get("keyLength", 32)), str(told.get("keyPrefix", "00")).lower()
    for counter in range(_MOST_ROUNDS // cost):
        key = derive(nonce + counter.to_bytes(4, "big"), salt, cost, length)[:length].hex()
        if key.startswith(prefix):
            signed = {"parameters": told, "signature": challenge.get("signature")}
            return {"challenge": signed, "solution": {"counter": counter, "derivedKey": key, "time": 1}}
    raise Unsolvable("no counter solves this challenge in the time that is given to it")


def _hash_rounds(digest: str, password: bytes, salt: bytes, cost: int, length: int) -> bytes:
    key = salt + password
    for _ in range(cost):
        key = hashlib.new(digest, key).digest()
    return key


_Derive = Callable[[bytes, bytes, int, int], bytes]
_DERIVATIONS: Mapping[str, _Derive] = {
    **{f"SHA-{size}": partial(_hash_rounds, f"sha{size}") for size in (256, 384, 512)},
    **{f"PBKDF2/SHA-{size}": partial(hashlib.pbkdf2_hmac, f"sha{size}") for size in (256, 384, 512)},
}


def verified(payload: str, key: str, *, now: float) -> str | None:
    """Return the challenge a payload solves; None if it is malformed, unsigned, unsolved, too late or not marked."""
    told = _decoded(payload)
    if told.get("mark") != MARK or told.get("algorithm") != ALGORITHM:
        return None
    challenge, salt, signature = (told.get(name) for name in ("challenge", "salt", "signature"))
    number = told.get("number")
    if not (isinstance(challenge, str) and isinstance(salt, str) and isinstance(signature, str)):
        return None
    if isinstance(number, bool) or not isinstance(number, int) or _expires(salt) <= now or not salt.endswith(_END):
        return None
    genuine = hmac.compare_digest(_hashed(salt, number).encode(), challenge.encode())
    signed = hmac.compare_digest(_signature(key, challenge).encode(), signature.encode())
    return challenge if genuine and signed else None


def _decoded(payload: str) -> Mapping[str, Any]:
    try:
        told = json.loads(base64.b64decode(payload, validate=True))
    except (binascii.Error, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _expires(salt: str) -> float:
    told = parse_qs(salt.partition("?")[2]).get("expires", [""])[0]
    return float(told) if told.isascii() and told.isdigit() else 0.0


def _hashed(salt: str, number: int) -> str:
    return hashlib.sha256(f"{salt}{number}".encode()).hexdigest()


def _signature(key: str, challenge: str) -> str:
    return hmac.new(key.encode(), challenge.encode(), hashlib.sha256).hexdigest()
