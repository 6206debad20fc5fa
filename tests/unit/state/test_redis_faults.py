"""What people read when a Redis fails: where, what, what to do, and nothing that was stored."""

from __future__ import annotations

import pytest
from redis import exceptions
from redis.sentinel import MasterNotFoundError

from pytest_captcha_qa.errors import ConfigError, StoreUnavailable
from pytest_captcha_qa.model.store import StoreAddress
from pytest_captcha_qa.state.redis_faults import explained, is_passing

ADDRESS = StoreAddress.parse("redis://:s3cret@cache.example/0")


@pytest.mark.parametrize(
    ("error", "words", "passing"),
    [
        (exceptions.ConnectionError("Error 111 connecting to cache.example:6379"), "cannot be reached", True),
        (exceptions.TimeoutError("Timeout reading from s3cret"), "does not answer in time", True),
        (OSError("broken"), "cannot be reached", True),
        (exceptions.ConnectionError("[SSL: CERTIFICATE_VERIFY_FAILED]"), r"over TLS; .*\?ca=FILE", True),
        (MasterNotFoundError("No master found for 'main'"), "none of its Sentinels", True),
        (exceptions.ReadOnlyError("You can't write against a read only replica."), "is a replica", False),
        (exceptions.ResponseError("Error running script: -READONLY You can't write"), "is a replica", False),
        (exceptions.ResponseError("OOM command not allowed when used memory > 'maxmemory'"), "out of memory", False),
        (exceptions.OutOfMemoryError("command not allowed"), "out of memory", False),
        (exceptions.ResponseError("MISCONF Redis is configured to save"), "cannot save them", False),
        (exceptions.BusyLoadingError("Redis is loading the dataset in memory"), "still reading its data", False),
        (exceptions.MovedError("3999 127.0.0.1:6381"), "Redis Cluster", False),
        (exceptions.ResponseError("secret value went wrong"), "refused a script", False),
    ],
)
def test_a_store_that_fails_is_unavailable(error: Exception, words: str, passing: bool) -> None:
    told = explained(error, ADDRESS, sent=True)
    assert isinstance(told, StoreUnavailable)
    with pytest.raises(StoreUnavailable, match=f"redis://cache.example:6379/0 .*{words}"):
        raise told
    assert "s3cret" not in str(told)
    assert "secret value" not in str(told)
    assert is_passing(error) is passing


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (exceptions.AuthenticationError("Authentication required."), "asks for a password"),
        (exceptions.AuthenticationError("invalid username-password pair or user is disabled."), "refuses the login"),
        (exceptions.AuthenticationError("invalid password"), "refuses the login"),
        (exceptions.NoPermissionError("this user has no permissions to run the 'eval' command"), "lists the rights"),
        (exceptions.ResponseError("unknown command 'EVALSHA'"), "Redis 5 or newer"),
        (exceptions.ResponseError("DB index is out of range"), "no database of that number"),
    ],
)
def test_a_store_that_refuses_us_is_a_matter_of_configuration(error: Exception, words: str) -> None:
    told = explained(error, ADDRESS, sent=False)
    assert isinstance(told, ConfigError)
    assert words in str(told)
    assert not is_passing(error)


def test_what_a_server_refused_it_has_not_done() -> None:
    refused = explained(exceptions.ReadOnlyError("x"), ADDRESS, sent=True)
    lost = explained(exceptions.TimeoutError("x"), ADDRESS, sent=True)
    assert isinstance(refused, StoreUnavailable)
    assert isinstance(lost, StoreUnavailable)
    assert (refused.sent, lost.sent) == (False, True)
