"""What a new proof changes about the one that lay in its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from pytest_captcha_qa.errors import ConfigError, ScopeDenied
from pytest_captcha_qa.ownership import ProofKey, ProofTerms, authenticate
from pytest_captcha_qa.scope import Evidence

UNREADABLE = "the earlier file was no proof that this key signed"


def changes(file: Path, terms: ProofTerms, key: ProofKey) -> list[str] | None:
    """Return in words what the new terms change; None if no file is replaced, empty if nothing changes.

    Raises:
        ConfigError: what lies there cannot be read.
    """
    try:
        text = file.read_bytes().decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{file} cannot be replaced: {error.strerror}") from None
    try:
        earlier = authenticate(text, key, terms.origins[0].origin, 0.0)
    except ScopeDenied:
        return [UNREADABLE]
    return list(_differences(earlier, terms))


def moment(seconds: float) -> str:
    """Return a time as people read it."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def _differences(earlier: Evidence, terms: ProofTerms) -> Iterator[str]:
    yield from _members("origin", map(str, earlier.origins), map(str, terms.origins))
    yield from _members("sitekey", earlier.sitekeys, terms.sitekeys)
    for name, before, now in (
        ("kind", earlier.kind, terms.kind),
        ("probes", earlier.probes, terms.probes),
        ("most solves an hour", earlier.max_solves_per_hour or "no limit", terms.max_solves_per_hour or "no limit"),
        ("expiry", moment(earlier.expires_at), moment(terms.expires_at)),
    ):
        if before != now:
            yield f"{name} {before} -> {now}"


def _members(name: str, before: Iterable[str], now: Iterable[str]) -> Iterator[str]:
    old, new = set(before), set(now)
    yield from (f"{name} added: {it}" for it in sorted(new - old))
    yield from (f"{name} removed: {it}" for it in sorted(old - new))
