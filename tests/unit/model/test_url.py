import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_captcha_qa.model.url import Origin, Url, UrlRefused

LONGEST_LABEL = "a" * 63


@pytest.mark.parametrize(
    ("text", "rebuilt"),
    [
        ("https://shop.example", "https://shop.example/"),
        ("https://shop.example/", "https://shop.example/"),
        ("https://shop.example/a/b?x=1&y=%20", "https://shop.example/a/b?x=1&y=%20"),
        ("https://shop.example:8443/a", "https://shop.example:8443/a"),
        ("http://shop.example:443/", "http://shop.example:443/"),
        ("https://shop.example/a#part", "https://shop.example/a"),
        ("https://shop.example#@evil.example/", "https://shop.example/"),
        ("https://shop.example?@evil.example/", "https://shop.example/?@evil.example/"),
        ("https://shop.example/?", "https://shop.example/"),
        ("https://shop.example/@evil.example", "https://shop.example/@evil.example"),
        ("https://shop.example//evil.example", "https://shop.example//evil.example"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/"),
        ("http://[::1]:8000/a", "http://[::1]:8000/a"),
        ("http://[2001:db8::1]/", "http://[2001:db8::1]/"),
        ("http://localhost:1/", "http://localhost:1/"),
        ("http://localhost:65535/", "http://localhost:65535/"),
        ("https://xn--80ak6aa92e.example/", "https://xn--80ak6aa92e.example/"),
        (f"https://{LONGEST_LABEL}.example/", f"https://{LONGEST_LABEL}.example/"),
        ("https://shop.example/регистрация", "https://shop.example/%D1%80%D0%B5%D0%B3%D0%B8%D1%81%D1%82%D1%80%D0%B0%D1%86%D0%B8%D1%8F"),
        ("https://shop.example/a?q=é", "https://shop.example/a?q=%C3%A9"),
        ('https://shop.example/<b>"', "https://shop.example/%3Cb%3E%22"),
    ],
)  # fmt: skip
def test_a_url_is_rebuilt_in_its_canonical_spelling(text: str, rebuilt: str) -> None:
    url = Url.parse(text)
    assert str(url) == rebuilt
    assert Url.parse(rebuilt) == url


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("/a/../b", "/b"),
        ("/a/./b", "/a/b"),
        ("/a/b/..", "/a/"),
        ("/a/b/.", "/a/b/"),
        ("/../../etc", "/etc"),
        ("/a/%2e%2E/b", "/b"),
        ("/a/.%2e/b", "/b"),
        ("/a/%2e/b", "/a/b"),
        ("/%252e%252e/b", "/%252e%252e/b"),
        ("/a/.../b", "/a/.../b"),
        ("/.//evil.example", "//evil.example"),
        ("/a%2f..%2fb", "/a%2f..%2fb"),
    ],
)
def test_dot_segments_are_resolved_as_browsers_do(path: str, normal: str) -> None:
    assert Url.parse(f"https://shop.example{path}").path == normal


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("shop.example", "does not start"),
        ("//shop.example/", "does not start"),
        ("https:/shop.example/", "does not start"),
        ("https:shop.example", "does not start"),
        ("HTTPS://shop.example/", "does not start"),
        ("Http://shop.example/", "does not start"),
        ("ftp://shop.example/", "does not start"),
        ("javascript://shop.example/%0aalert(1)", "does not start"),
        (" https://shop.example/", "white space"),
        ("https://shop.example/ ", "white space"),
        ("https://shop.example/a b", "white space"),
        ("https://shop\t.example/", "white space"),
        ("ht\ttps://shop.example/", "white space"),
        ("https://shop.example/\r\nX: y", "white space"),
        ("https://shop.example\x00.evil.example/", "white space"),
        ("https://shop.example\\@evil.example/", "backslash"),
        ("https:\\\\shop.example/", "backslash"),
        ("https://shop.example/\\evil", "backslash"),
        ("https://shop.example/\x85", "white space"),
        ("https://shop.example/\u2028", "white space"),
        ("\ufeffhttps://shop.example/", "white space"),
        ("https://shop.example/\ud800", "white space"),
        ("https:///shop.example/", "no host"),
        ("https://", "no host"),
        ("https://:8443/", "no host"),
        ("https://?x", "no host"),
        ("https://user@shop.example/", "user info"),
        ("https://user:pw@shop.example/", "user info"),
        ("https://@shop.example/", "user info"),
        ("https://shop.example@evil.example/", "user info"),
        ("https://shop.example%2eevil.example/", "percent-encoded"),
        ("https://shop%2Eexample/", "percent-encoded"),
        ("https://shop.example:443/", "default port"),
        ("http://shop.example:80/", "default port"),
        ("https://shop.example:/", "port"),
        ("https://shop.example:0/", "port"),
        ("https://shop.example:00443/", "port"),
        ("https://shop.example:65536/", "port"),
        ("https://shop.example:99999999999/", "port"),
        ("https://shop.example:+8443/", "port"),
        ("https://shop.example:-1/", "port"),
        ("https://shop.example:84_43/", "port"),
        ("https://shop.example:８４/", "port"),
        ("https://shop.example:8443:8443/", "port"),
        ("https://shop.example:8443x/", "port"),
        ("https://Shop.example/", "lower case: shop.example"),
        ("https://shop.example./", "ends with a dot"),
        ("https://./", "ends with a dot"),
        ("https://shop..example/", "not a valid name"),
        ("https://.shop.example/", "not a valid name"),
        ("https://-shop.example/", "not a valid name"),
        ("https://shop-.example/", "not a valid name"),
        ("https://shop_1.example/", "not a valid name"),
        ("https://*.shop.example/", "not a valid name"),
        ("https://shop.example;evil/", "not a valid name"),
        ("https://shop.example,evil.example/", "not a valid name"),
        ("https://<B>.example/", "not a valid name"),
        (f"https://{LONGEST_LABEL}a.example/", "not a valid name"),
        (f"https://{'.'.join([LONGEST_LABEL] * 4)}/", "not a valid name"),
        ("https://shöp.example/", "xn--"),
        ("https://shop。example/", "xn--"),
        ("https://ｓhop.example/", "xn--"),
        ("https://ſhop.example/", "xn--"),
        ("https://shop.example\u200b/", "xn--"),
        ("https://①②⑦.⓪.⓪.①/", "xn--"),
        ("http://127.1/", "IPv4"),
        ("http://2130706433/", "IPv4"),
        ("http://0x7f000001/", "IPv4"),
        ("http://0x7f.0.0.1/", "IPv4"),
        ("http://0177.0.0.1/", "IPv4"),
        ("http://127.0.0.01/", "IPv4"),
        ("http://127.0.0.256/", "IPv4"),
        ("http://127.0.0.1.5/", "IPv4"),
        ("http://shop.example.0x1/", "IPv4"),
        ("http://shop.9/", "IPv4"),
        ("http://[::1/", "not closed"),
        ("http://[]/", "IPv6"),
        ("http://[::g]/", "IPv6"),
        ("http://[v1.a]/", "IPv6"),
        ("http://[127.0.0.1]/", "IPv6"),
        ("http://[::1]evil/", "port"),
        ("http://[::1%25eth0]/", "percent-encoded"),
        ("http://[::ffff:127.0.0.1]/", "stands for something else"),
        ("http://[::ffff:7f00:1]/", "stands for something else"),
        ("http://[0:0:0:0:0:0:0:1]/", r"as \[::1\]"),
        ("http://[2001:DB8::1]/", r"as \[2001:db8::1\]"),
        ("http://::1/", "port"),
    ],
)
def test_a_url_that_could_mean_two_things_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(UrlRefused, match=why):
        Url.parse(text)


BASE = Url.parse("https://shop.example/a/b?q=1")


@pytest.mark.parametrize(
    ("reference", "result"),
    [
        ("", "https://shop.example/a/b?q=1"),
        ("#x", "https://shop.example/a/b?q=1"),
        ("?", "https://shop.example/a/b"),
        ("?x=2", "https://shop.example/a/b?x=2"),
        ("c", "https://shop.example/a/c"),
        ("c?x=//evil.example", "https://shop.example/a/c?x=//evil.example"),
        ("c#//evil.example", "https://shop.example/a/c"),
        ("/c", "https://shop.example/c"),
        ("./c", "https://shop.example/a/c"),
        ("../c", "https://shop.example/c"),
        ("../../../c", "https://shop.example/c"),
        (".", "https://shop.example/a/"),
        ("..", "https://shop.example/"),
        ("%2e%2e/c", "https://shop.example/c"),
        (";p", "https://shop.example/a/;p"),
        (":b", "https://shop.example/a/:b"),
        ("./x:y", "https://shop.example/a/x:y"),
        ("c//d", "https://shop.example/a/c//d"),
        ("/.//evil.example", "https://shop.example//evil.example"),
        ("é?é", "https://shop.example/a/%C3%A9?%C3%A9"),
        (" \n/c\t", "https://shop.example/c"),
        ("//other.example/c", "https://other.example/c"),
        ("//other.example:8443", "https://other.example:8443/"),
        ("http://other.example/c?d#e", "http://other.example/c?d"),
    ],
)
def test_a_reference_is_resolved_against_its_page(reference: str, result: str) -> None:
    assert str(BASE.join(reference)) == result


@pytest.mark.parametrize(
    "reference",
    [
        "//",
        "///",
        "///evil.example/",
        "////evil.example/",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "//[",
        "//evil[.example",
        "//a\u2100b",
        "//evil@shop.example",
        "//shop.example@evil.example",
        "//shop.example:443/",
        "//Shop.example/",
        "http:evil.example",
        "http:/evil.example",
        "https:c",
        "https:///evil.example",
        "HTTPS://shop.example/",
        "javascript:alert(1)",
        "javascript://shop.example/%0aalert(1)",
        "data:text/html,x",
        "mailto:a@b.example",
        "tel:1",
        "x:y",
        "http://[::1",
        "a b",
    ],
)
def test_a_reference_that_could_mean_two_things_is_refused(reference: str) -> None:
    with pytest.raises(UrlRefused):
        BASE.join(reference)


@given(st.text(alphabet=st.sampled_from("ab.:/\\?#@[]%2eE\t é℀*-0xhtps"), max_size=30))
def test_any_reference_is_resolved_or_refused_and_nothing_else(reference: str) -> None:
    try:
        url = BASE.join(reference)
    except UrlRefused:
        return
    assert Url.parse(str(url)) == url
    assert str(url).isascii()


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused_and_nothing_else(text: str) -> None:
    for candidate in (text, f"https://{text}", f"https://shop.example/{text}"):
        try:
            url = Url.parse(candidate)
        except UrlRefused:
            continue
        assert Url.parse(str(url)) == url


@pytest.mark.parametrize("path", ["", "a", "@evil.example", ".evil.example", "/a?b", "/a#b", "/a b", "/é", "/\\x"])
def test_a_path_that_would_run_into_the_host_or_the_query_makes_no_url(path: str) -> None:
    with pytest.raises(UrlRefused):
        dataclasses.replace(BASE, path=path)


@pytest.mark.parametrize("query", ["a#b", "a b", "é", "\\", "a\r\nb"])
def test_a_query_that_is_not_encoded_makes_no_url(query: str) -> None:
    with pytest.raises(UrlRefused):
        Url(BASE.origin, "/", query)


@pytest.mark.parametrize(
    "parts",
    [
        ("HTTPS", "shop.example", 443),
        ("ftp", "shop.example", 21),
        ("https", "", 443),
        ("https", "Shop.example", 443),
        ("https", "shop.example.", 443),
        ("https", "user@shop.example", 443),
        ("https", "shop.example/path", 443),
        ("https", "shop.example:1", 443),
        ("https", "shop.example", 0),
        ("https", "shop.example", 65536),
        ("http", "127.1", 80),
        ("http", "::1", 80),
        ("http", "[::0:1]", 80),
    ],
)
def test_an_origin_that_was_not_parsed_is_held_to_the_same_spelling(parts: tuple[str, str, int]) -> None:
    with pytest.raises(UrlRefused):
        Origin(*parts)


@pytest.mark.parametrize("text", ["https://shop.example", "https://shop.example/", "http://[::1]:8000"])
def test_an_origin_is_read_with_or_without_its_last_slash(text: str) -> None:
    assert str(Origin.parse(text)) == text.removesuffix("/")


@pytest.mark.parametrize(
    "text",
    ["https://shop.example//", "https://shop.example/a", "https://shop.example/?", "https://shop.example/?a",
     "https://shop.example#a", "https://shop.example/.", "https://shop.example:443"],
)  # fmt: skip
def test_what_says_more_than_an_origin_is_refused(text: str) -> None:
    with pytest.raises(UrlRefused):
        Origin.parse(text)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.0.2", "127.255.255.254", "[::1]"])
def test_localhost_and_literal_loopback_addresses_are_loopback(host: str) -> None:
    assert Origin("http", host, 8000).is_loopback


@pytest.mark.parametrize(
    "host",
    ["localhost.example", "127.0.0.1.nip.io", "lvh.me", "localtest.me", "ip6-localhost",
     "localhost.localdomain", "a.localhost", "0.0.0.0", "128.0.0.1", "10.0.0.1", "[::]", "[::2]",
     "[::7f00:1]", "[64:ff9b::7f00:1]", "[fe80::1]"],
)  # fmt: skip
def test_names_that_may_resolve_to_loopback_and_other_addresses_are_not(host: str) -> None:
    assert not Origin("http", host, 8000).is_loopback


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", True),
        ("[::1]", True),
        ("shop.example", False),
        ("4.example", False),
        ("localhost", False),
    ],
)
def test_addresses_are_told_from_names(host: str, address: bool) -> None:
    assert Origin("http", host, 80).is_address is address


def test_a_query_is_neither_in_the_repr_nor_in_what_may_be_shown() -> None:
    url = Url.parse("https://shop.example/reset?token=secret")
    assert "secret" not in repr(url)
    assert url.without_query == "https://shop.example/reset"
    assert url.target == "/reset?token=secret"
