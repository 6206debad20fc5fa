"""What a widget fetches before it can be solved: from a granted address only, little, and of the right kind."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest

from pytest_captcha_qa.errors import ConfigError, PageError, ScopeDenied, TargetUnavailable, TransportError
from pytest_captcha_qa.forms.keyless import LARGEST_IMAGE
from pytest_captcha_qa.forms.page import HttpFormDriver
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import SubmitSpec
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Url

PAGE = "https://shop.example/signup"
IMAGE_URL = "https://shop.example/captcha/image?id=5f3a"
CHALLENGE_URL = "https://shop.example/altcha/challenge?form=signup"
PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 40
IMAGE, ALTCHA = CaptchaType.IMAGE, CaptchaType.ALTCHA


@pytest.fixture
def opened(site, html, spec, grants, deadline):
    """Open a fixture page as a form of a type."""

    def open_it(page, kind, **more):
        site.page(PAGE, html(page))
        return HttpFormDriver(lambda: site).open(spec(kind, **more), Url.parse(PAGE), grants, deadline)

    return open_it


def test_the_bytes_of_the_image_are_what_the_provider_is_told(site, opened):
    site.page(IMAGE_URL, PNG, content_type="image/png")
    challenge = opened("image", IMAGE).challenge

    assert dict(challenge.data) == {"image": base64.b64encode(PNG).decode()}
    asked = site.asked[1]
    assert (asked.method, asked.url, asked.payload.headers["Referer"]) == ("GET", IMAGE_URL, PAGE)
    assert asked.payload.headers["Accept"].startswith("image/png")


def test_each_load_of_the_page_has_an_image_of_its_own(site, opened):
    seen = []
    for content in (PNG + b"1", PNG + b"2"):
        site.page(IMAGE_URL, content, content_type="image/png")
        seen.append(opened("image", IMAGE).challenge.data["image"])

    assert len(set(seen)) == 2


def test_an_image_that_stands_on_the_page_needs_no_request(site, opened):
    challenge = opened("image_inline", IMAGE).challenge

    assert base64.b64decode(challenge.data["image"]).startswith(b"\x89PNG")
    assert len(site.asked) == 1


def test_an_altcha_challenge_is_fetched_and_told_without_its_address(site, opened):
    site.page(CHALLENGE_URL, '{"algorithm": "SHA-256", "challenge": "é"}', content_type="application/json")

    assert dict(opened("altcha", ALTCHA).challenge.data) == {
        "challenge_json": '{"algorithm":"SHA-256","challenge":"\\u00e9"}'
    }


def test_an_altcha_challenge_that_stands_on_the_page_needs_no_request(site, opened):
    assert opened("altcha_inline", ALTCHA).challenge.data["challenge_json"].startswith('{"algorithm"')
    assert len(site.asked) == 1


def test_the_answer_goes_where_the_page_takes_it(site, opened, grants, deadline):
    site.page(IMAGE_URL, PNG, content_type="image/png")
    site.takes(PAGE)
    opened("image", IMAGE).submit(Solution.of_text("w7k2"), {}, grants, deadline)

    assert "captcha_answer=w7k2" in site.asked[-1].body
    assert "captcha_id=5f3a" in site.asked[-1].body


@pytest.mark.parametrize(
    ("address", "denied"),
    [
        ("https://cdn.other.example/captcha.png", "not authorised, and nothing was sent to it; the image of image on"),
        ("//other.example/captcha.png", "not authorised"),
        ("http://user@shop.example/captcha.png", "is refused"),
        ("file:///etc/passwd", "is refused"),
    ],
)
def test_nothing_is_fetched_from_an_address_without_a_grant(site, html, spec, grants, deadline, address, denied):
    site.page(PAGE, html("image").replace("/captcha/image?id=5f3a", address))

    with pytest.raises(ScopeDenied, match=denied):
        HttpFormDriver(lambda: site).open(spec(IMAGE), Url.parse(PAGE), grants, deadline)
    assert [asked.url for asked in site.asked] == [PAGE]


@pytest.mark.parametrize(
    ("kind", "page", "url", "body", "status", "words"),
    [
        (IMAGE, "image", IMAGE_URL, PNG, 302, "the image of image on .* cannot be had: .*/captcha/image answers 302"),
        (IMAGE, "image", IMAGE_URL, PNG, 404, "answers 404"),
        (IMAGE, "image", IMAGE_URL, b"<html>login</html>", 200, "is no PNG, JPEG or GIF"),
        (IMAGE, "image", IMAGE_URL, b"<svg/>", 200, "is no PNG, JPEG or GIF"),
        (ALTCHA, "altcha", CHALLENGE_URL, b"<html>", 200, "is no ALTCHA challenge"),
        (ALTCHA, "altcha", CHALLENGE_URL, b"[]", 200, "is no ALTCHA challenge"),
        (ALTCHA, "altcha", CHALLENGE_URL, b"[" * 9999, 200, "is no ALTCHA challenge"),
        (ALTCHA, "altcha", CHALLENGE_URL, b'{"maxnumber":NaN}', 200, "is no ALTCHA challenge"),
        (ALTCHA, "altcha", CHALLENGE_URL, b'{"maxnumber":1e999}', 200, "is no ALTCHA challenge"),
    ],
)
def test_what_is_no_challenge_is_a_broken_page(site, opened, kind, page, url, body, status, words):
    site.page(url, body, status=status)

    with pytest.raises(PageError, match=words):
        opened(page, kind)


def test_an_inline_image_that_is_none_is_a_broken_page(site, html, spec, grants, deadline):
    for text in ("!!!!", "QUJD"):
        site.page(PAGE, html("image_inline").replace("iVBORw0KGgo", f"{text}iVBORw0KGgo"))
        with pytest.raises(PageError, match=r"is no (?:image in base64|PNG, JPEG or GIF)"):
            HttpFormDriver(lambda: site).open(spec(IMAGE), Url.parse(PAGE), grants, deadline)


CODED = base64.b64encode(PNG + b"\xfb\xff").decode()


@pytest.mark.parametrize(
    "address",
    [
        f"data:image/png;base64,{CODED}",
        f"DATA:image/PNG;BASE64,{CODED}",
        f"data:image/png;base64,{CODED[:20]}\n    {CODED[20:]}",
        f"data:image/png;base64,{CODED.rstrip('=')}",
        f"data:image/png;base64,{quote(CODED, safe='')}",
        f"data:image/png;charset=utf-8;base64,{CODED}",
        f"data:;base64,{CODED}",
        f"data:image/png,{quote(PNG + bytes([0xFB, 0xFF]))}",
    ],
)
def test_an_inline_image_is_read_as_browsers_read_it(site, html, spec, grants, deadline, address):
    site.page(PAGE, html("image").replace("/captcha/image?id=5f3a", address))
    opened = HttpFormDriver(lambda: site).open(spec(IMAGE), Url.parse(PAGE), grants, deadline)

    assert opened.challenge.data == {"image": CODED}


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("data:image/svg+xml;utf8,%3Csvg/%3E", "is no PNG, JPEG or GIF"),
        ("data:image/webp;base64,UklGRg==", "is no PNG, JPEG or GIF"),
        ("data:image/png;base64,iVé", "is no image in base64"),
        ("data:", "is no PNG, JPEG or GIF"),
        (f"data:image/png;base64,{CODED[:40]}{'A' * 4 * LARGEST_IMAGE}", "is larger than any service takes"),
    ],
)
def test_an_inline_image_no_service_can_read_is_a_broken_page(site, html, spec, grants, deadline, address, words):
    site.page(PAGE, html("image").replace("/captcha/image?id=5f3a", address))

    with pytest.raises(PageError, match=words):
        HttpFormDriver(lambda: site).open(spec(IMAGE), Url.parse(PAGE), grants, deadline)


def test_a_redirect_of_what_a_widget_fetches_is_followed_as_browsers_do(site, opened):
    site.redirect(IMAGE_URL, "/captcha/new.png")
    site.page("https://shop.example/captcha/new.png", PNG, content_type="image/png")

    assert opened("image", IMAGE).challenge.data == {"image": base64.b64encode(PNG).decode()}


def test_a_redirect_to_an_address_without_a_grant_is_not_followed(site, opened):
    site.redirect(CHALLENGE_URL, "https://other.example/challenge")

    with pytest.raises(ScopeDenied, match=r"https://other.example/challenge is not authorised, and nothing was sent"):
        opened("altcha", ALTCHA)
    assert [asked.url for asked in site.asked] == [PAGE, CHALLENGE_URL]


def test_redirects_without_an_end_are_a_broken_page(site, opened):
    site.redirect(IMAGE_URL, IMAGE_URL)

    with pytest.raises(PageError, match="captcha/image answers 302"):
        opened("image", IMAGE)
    assert len(site.asked) < 10


@pytest.mark.parametrize(("kind", "error"), [("too_large", PageError), ("refused", TargetUnavailable)])
def test_one_that_is_too_large_or_does_not_come_is_told_apart(site, opened, kind, error):
    site.answers[f"GET {IMAGE_URL}"] = TransportError("no answer", kind=kind, sent=True)

    with pytest.raises(error):
        opened("image", IMAGE)


def test_no_more_of_an_image_is_read_than_any_service_takes(site, opened, monkeypatch):
    limits = []
    plain = type(site).request

    def request(self, method, url, **options):
        limits.append(options.get("limit"))
        return plain(self, method, url, **options)

    monkeypatch.setattr(type(site), "request", request)
    site.page(IMAGE_URL, PNG)
    opened("image", IMAGE)

    assert limits == [None, LARGEST_IMAGE]


def test_a_described_submit_says_where_the_answer_to_an_image_goes(site, opened):
    site.page("https://shop.example/captcha.png", PNG)
    with pytest.raises(ConfigError, match=r"forms\.signup\.submit\.token_at"):
        opened("image_two_fields", IMAGE, submit=SubmitSpec("/api/signup"))

    placed = SubmitSpec("/api/signup", token_at={"token": "captcha.answer"})
    described = opened("image_two_fields", IMAGE, submit=placed)
    assert described.challenge.data.keys() == {"image"}
