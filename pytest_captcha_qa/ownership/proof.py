"""The proof file: what stands in it, how it is signed, how it is read.

    captcha-qa-proof 1
    origins: https://staging.shop.example https://*.preview.shop.example
    kind: staging
    probes: safe
    sitekeys: 6LcExampleExampleExampleExampleExampleEx
    max-solves-per-hour: 60
    expires: 2027-05-28T00:00:00Z
    mac: <64 hexadecimal digits>

All lines are there, in this order, one space between two values; `none` stands for no sitekeys and for no
limit. The MAC is HMAC-SHA256 under the team's key over the lines above it, each ended by one line feed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import NoReturn, TypeVar

from pytest_captcha_qa.errors import ConfigError, ScopeDenied
from pytest_captcha_qa.model.form import EnvKind
from pytest_captcha_qa.model.url import Origin, Url, UrlRefused
from pytest_captcha_qa.scope import Evidence, OriginPattern, Probes

KEY_VARIABLE = "CAPTCHA_QA_PROOF_KEY"
SIZE_LIMIT = 4096
"""Most bytes of a proof file (R0.2)."""

_FOLDER = "/.well-known/captcha-qa/"
_HEADER = "captcha-qa-proof 1"
_NAMES = ("origins", "kind", "probes", "sitekeys", "max-solves-per-hour", "expires", "mac")
_NONE = "none"
_KEY = re.compile(r"(?:[0-9A-Fa-f]{2}){16,}\Z")
_MAC = re.compile(r"[0-9a-f]{64}\Z")
_SITEKEY = re.compile(r"[A-Za-z0-9_.:/+=-]{1,200}\Z")
_HOURLY = re.compile(r"[1-9][0-9]{0,5}\Z")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z\Z")
_MOMENT_FORMAT = "%Y-%m-%dT%H:%M:%SZ"

_Word = TypeVar("_Word", bound=StrEnum)


class ProofKey:
    """The team's secret key: `id` names it in public, `sign` uses it, nothing shows it."""

    __slots__ = ("_secret", "id")

    def __init__(self, text: str) -> None:
        """Read the key as `make_key` writes it.

        Raises:
            ConfigError: it is not hexadecimal or shorter than 32 digits.
        """
        if not _KEY.match(text.strip()):
            raise ConfigError(
                f"{KEY_VARIABLE} must hold an even number of hexadecimal digits, at least 32; "
                "`captcha-qa authorise ENV` makes such a key where there is none"
            )
        self._secret = bytes.fromhex(text.strip())
        self.id = self._mac(b"captcha-qa key id")[:16]

    def __repr__(self) -> str:
        return f"<ProofKey {self.id}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a proof key is a secret and is not sent to another process")

    def sign(self, lines: Sequence[str]) -> str:
        """Return the MAC of the lines, 64 hexadecimal digits."""
        return self._mac("".join(f"{line}\n" for line in lines).encode())

    def _mac(self, message: bytes) -> str:
        return hmac.new(self._secret, message, hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class ProofTerms:
    """What the owner of the origins agrees to.

    `expires_at`: seconds since the epoch; `max_solves_per_hour`: None for no limit.
    """

    origins: tuple[OriginPattern, ...]
    kind: EnvKind
    expires_at: float
    probes: Probes = Probes.NONE
    sitekeys: frozenset[str] = frozenset()
    max_solves_per_hour: int | None = None


def make_key() -> str:
    """Return a new key as it is written into CAPTCHA_QA_PROOF_KEY: 64 hexadecimal digits."""
    return secrets.token_hex(32)


def key_id(key: ProofKey) -> str:
    """Return the public name of the key, 16 hexadecimal digits."""
    return key.id


def proof_url(origin: Origin, key: ProofKey) -> Url:
    """Return where the origin must serve the proof of this key."""
    return Url(origin, f"{_FOLDER}{key_id(key)}.txt", "")


def render(terms: ProofTerms, key: ProofKey) -> str:
    """Return the signed proof file.

    Raises:
        ConfigError: a term cannot be written, or the file would pass 4 KiB.
    """
    hourly = _NONE if terms.max_solves_per_hour is None else terms.max_solves_per_hour
    values = {
        "origins": " ".join(map(str, terms.origins)),
        "kind": terms.kind,
        "probes": terms.probes,
        "sitekeys": " ".join(sorted(terms.sitekeys)) or _NONE,
        "max-solves-per-hour": str(hourly),
        "expires": datetime.fromtimestamp(int(terms.expires_at), UTC).strftime(_MOMENT_FORMAT),
    }
    try:
        if _terms(values).sitekeys != terms.sitekeys:
            raise _Malformed(f"a sitekey holds a space or is the word {_NONE!r}, so its sitekeys would be others")
    except _Malformed as fault:
        raise ConfigError(f"the proof cannot be written: {fault}") from None
    lines = _signed_lines(values)
    text = "\n".join([*lines, f"mac: {key.sign(lines)}", ""])
    if len(text.encode()) > SIZE_LIMIT:
        raise ConfigError("the proof would be larger than 4 KiB; name fewer origins or sitekeys")
    return text


def authenticate(text: str, key: ProofKey, fetched_from: Origin, fetched_at: float) -> Evidence:
    """Return what the file proves, if it is signed with the team's key; `fetched_at` on the monotonic clock.

    Whether that suffices for a target is scope's question. No error repeats any of the file's text.

    Raises:
        ScopeDenied: proof_unreadable, or proof_other_key where the MAC does not fit.
    """
    try:
        values = _values(text)
        if not hmac.compare_digest(key.sign(_signed_lines(values)), values["mac"]):
            raise ScopeDenied(
                f"the proof that {fetched_from} serves was not signed with the key in {KEY_VARIABLE}, "
                "or was edited afterwards; make it anew with `captcha-qa authorise ENV`",
                reason="proof_other_key",
            )
        terms = _terms(values)
    except _Malformed as fault:
        raise ScopeDenied(
            f"the proof that {fetched_from} serves cannot be read: {fault}; "
            "make it anew with `captcha-qa authorise ENV`",
            reason="proof_unreadable",
        ) from None
    return Evidence(
        fetched_from=fetched_from,
        fetched_at=fetched_at,
        origins=terms.origins,
        kind=terms.kind,
        expires_at=terms.expires_at,
        probes=terms.probes,
        sitekeys=terms.sitekeys,
        max_solves_per_hour=terms.max_solves_per_hour,
    )


class _Malformed(ValueError):
    """A text is no proof; the message says why without repeating any of it."""


def _signed_lines(values: Mapping[str, str]) -> list[str]:
    return [_HEADER, *(f"{name}: {values[name]}" for name in _NAMES if name != "mac")]


def _values(text: str) -> dict[str, str]:
    """Return the values by name; every name stands there once, in order."""
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    if lines[0] != _HEADER:
        raise _Malformed(f"its first line is not {_HEADER!r}")
    values: dict[str, str] = {}
    for number, line in enumerate(lines[1:], start=2):
        name, separator, value = line.partition(": ")
        if not separator or name not in _NAMES:
            raise _Malformed(f"line {number} is none of {', '.join(_NAMES)}")
        if name in values:
            raise _Malformed(f"line {number} says {name} again")
        values[name] = value
    if missing := [name for name in _NAMES if name not in values]:
        raise _Malformed(f"it lacks {', '.join(missing)}")
    if tuple(values) != _NAMES:
        raise _Malformed(f"its lines are not in the order {', '.join(_NAMES)}")
    if not _MAC.match(values["mac"]):
        raise _Malformed("its mac is not 64 lower-case hexadecimal digits")
    return values


def _terms(values: Mapping[str, str]) -> ProofTerms:
    return ProofTerms(
        origins=_origins(values["origins"]),
        kind=_word(EnvKind, "kind", values["kind"]),
        expires_at=_moment(values["expires"]),
        probes=_word(Probes, "probes", values["probes"]),
        sitekeys=_sitekeys(values["sitekeys"]),
        max_solves_per_hour=_hourly(values["max-solves-per-hour"]),
    )


def _origins(value: str) -> tuple[OriginPattern, ...]:
    try:
        return tuple(OriginPattern.parse(text) for text in value.split(" "))
    except UrlRefused:
        raise _Malformed("one of its origins is not written as https://host or https://*.host") from None


def _word(words: type[_Word], name: str, value: str) -> _Word:
    try:
        return words(value)
    except ValueError:
        raise _Malformed(f"its {name} is none of {', '.join(words)}") from None


def _sitekeys(value: str) -> frozenset[str]:
    if value == _NONE:
        return frozenset()
    sitekeys = value.split(" ")
    if _NONE in sitekeys or not all(map(_SITEKEY.match, sitekeys)):
        raise _Malformed("its sitekeys are neither `none` nor keys with one space between two")
    return frozenset(sitekeys)


def _hourly(value: str) -> int | None:
    if value == _NONE:
        return None
    if not _HOURLY.match(value):
        raise _Malformed("its max-solves-per-hour is neither `none` nor a number from 1 to 999999")
    return int(value)


def _moment(value: str) -> float:
    # The shape is compared first: strptime alone also takes single digits.
    if _MOMENT.match(value):
        try:
            return datetime.strptime(value, _MOMENT_FORMAT).replace(tzinfo=UTC).timestamp()
        except ValueError:
            pass
    raise _Malformed("its expiry is not a moment written as 2027-05-28T00:00:00Z")
