"""What went wrong with a Redis, as sentences that show no password and no value."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_captcha_qa.errors import CaptchaQAError, ConfigError, StoreUnavailable
from pytest_captcha_qa.model.store import StoreAddress

# What a server says before it refuses, and what to do about it. Old ones put it in the middle of a script's error.
_REFUSALS: Mapping[str, str] = {
    "READONLY": "is a replica and takes no writes; name the primary, or the Sentinels that know it",
    "OOM": "is out of memory; raise its maxmemory, or give the tests a Redis of their own",
    "MISCONF": "takes no writes because it cannot save them to its disk; look at its log",
    "NOREPLICAS": "takes no writes because too few of its replicas are connected",
    "LOADING": "is still reading its data from disk",
    "BUSY": "is busy with somebody's long script",
    "MASTERDOWN": "is a replica that has lost its primary",
    "MOVED": "is part of a Redis Cluster, which this version does not follow; name a single server or Sentinels",
    "CROSSSLOT": "is part of a Redis Cluster, which this version does not follow; name a single server or Sentinels",
}
_LOGIN: Mapping[str, str] = {
    "Authentication required": "asks for a password; write it into the address, redis://:PASSWORD@host",
    "invalid username-password": "refuses the login of its address",
    "invalid password": "refuses the login of its address",
    "no password is set": "has no password, but its address gives one; leave it out",
    "NOPERM": "does not let this user do what is needed; docs/stores.md lists the rights",
    "user executing the script can": "does not let this user do what is needed; docs/stores.md lists the rights",
    "unknown command": "does not know a command that is needed; Redis 5 or newer, or Valkey, is required",
    "DB index is out of range": "has no database of that number",
}
# The library takes the first word of these answers away.
_FIRST_WORDS: Mapping[str, str] = {
    "ReadOnlyError": "READONLY",
    "OutOfMemoryError": "OOM",
    "BusyLoadingError": "LOADING",
    "NoPermissionError": "NOPERM",
    "MasterDownError": "MASTERDOWN",
    "MovedError": "MOVED",
    "ClusterCrossSlotError": "CROSSSLOT",
}


def is_passing(error: Exception) -> bool:
    """Return whether the same call may succeed at once on a new connection."""
    from redis.exceptions import AuthenticationError, ConnectionError, TimeoutError

    passing = (ConnectionError, TimeoutError, OSError)
    return isinstance(error, passing) and not isinstance(error, AuthenticationError) and not _said(error, _REFUSALS)


def explained(error: Exception, address: StoreAddress, *, sent: bool) -> CaptchaQAError:
    """Return our own error for a library's; `sent`: whether the server may have done what it was asked."""
    from redis.exceptions import ResponseError

    login = _said(error, _LOGIN)
    if login is not None:
        return ConfigError(f"the shared store {address} {login}")
    refusal = _said(error, _REFUSALS)
    if refusal is not None:
        return StoreUnavailable(f"the shared store {address} {refusal}", sent=False)
    if isinstance(error, ResponseError):
        return StoreUnavailable(f"the shared store {address} refused a script; look at its log and version", sent=sent)
    return StoreUnavailable(f"the shared store {address} {_silence(error, address)}", sent=sent)


def _silence(error: Exception, address: StoreAddress) -> str:
    from redis.exceptions import TimeoutError
    from redis.sentinel import MasterNotFoundError

    if isinstance(error, MasterNotFoundError):
        return f"is known to none of its Sentinels: nobody told where the primary of {address.service!r} is"
    if isinstance(error, TimeoutError):
        return "does not answer in time"
    if _mentions(error, ("certificate", "SSL", "ssl")):
        return "cannot be reached over TLS; check its certificate, and ?ca=FILE for a private authority"
    return "cannot be reached; check that it runs, its address, and the network between"


def _said(error: Exception, sentences: Mapping[str, str]) -> str | None:
    text = f"{_FIRST_WORDS.get(type(error).__name__, '')} {error}"
    return next((sentence for word, sentence in sentences.items() if word in text), None)


def _mentions(error: BaseException, words: tuple[str, ...]) -> bool:
    return any(word in str(error) for word in words)
