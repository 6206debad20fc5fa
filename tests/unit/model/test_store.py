"""Addresses of a shared store: every form that is taken, every one that is refused, and no password shown."""

from __future__ import annotations

import pytest

from pytest_captcha_qa.model.store import Login, StoreAddress, StoreAddressRefused

SECRET = "s3cr%40t"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("redis://cache.example", "redis://cache.example:6379/0"),
        ("redis://:s3cr%40t@cache.example:7000/3", "redis://cache.example:7000/3"),
        ("redis://[::1]:7000?db=2", "redis://::1:7000/2"),
        ("rediss://user:s3cr%40t@cache.example/?ca=/etc/ca.pem", "rediss://cache.example:6379/0"),
        ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock"),
        ("redis+sentinel://:s3cr%40t@s1,s2:7000,[::1]/main/4", "redis+sentinel://s1:26379,s2:7000,::1:26379/main"),
        ("rediss+sentinel://s1/main?sentinel_password=s3cr%40t", "rediss+sentinel://s1:26379/main"),
        ("redis://:s3cr@t@cache.example", "redis://cache.example:6379/0"),
        (" redis://cache.example \n", "redis://cache.example:6379/0"),
    ],
)
def test_an_address_shows_where_it_is_and_nothing_secret(text: str, shown: str) -> None:
    address = StoreAddress.parse(text)
    assert str(address) == shown
    assert "s3cr" not in f"{address!r} {address}"
    assert address.secrets == (("s3cr@t",) if "s3cr" in text else ())


def test_an_address_is_taken_apart() -> None:
    sentinel = StoreAddress.parse(
        "rediss+sentinel://me:pw@s1,s2:1/main/4?sentinel_username=a&sentinel_password=b&ca=c&cert=d&key=e"
    )
    assert sentinel == StoreAddress(
        hosts=(("s1", 26379), ("s2", 1)),
        service="main",
        db=4,
        login=Login("me", "pw"),
        sentinel_login=Login("a", "b"),
        tls=True,
        ca="c",
        cert="d",
        key="e",
    )
    assert StoreAddress.parse("unix://:pw@/run/r.sock?db=1") == StoreAddress(
        path="/run/r.sock", db=1, login=Login(None, "pw")
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no address of a shared store"),
        ("cache.example:6379", "no address of a shared store"),
        ("http://:s3cr%40t@cache.example", "no address of a shared store"),
        ("redis://:s3cr%40t@", "one of its hosts is none"),
        ("redis://:s3cr%40t@host:0", "one of its hosts is none"),
        ("redis://:s3cr%40t@host:70000", "one of its hosts is none"),
        ("redis://:s3cr%40t@a,b", "names several hosts"),
        ("redis://:s3cr%40t@a/main", "its database is not a number"),
        ("redis://a?password=s3cr%40t", "an option that is not known"),
        ("redis://a?ca=x", "an option that is not known"),
        ("unix://run/redis.sock", "three slashes"),
        ("unix:///", "three slashes"),
        ("redis+sentinel://:s3cr%40t@a", "it names no service"),
    ],
)
def test_another_text_is_refused_in_words_that_show_nothing_of_it(text: str, why: str) -> None:
    with pytest.raises(StoreAddressRefused, match=why) as refused:
        StoreAddress.parse(text)
    assert "s3cr" not in str(refused.value)
