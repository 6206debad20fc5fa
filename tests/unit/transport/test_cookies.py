from __future__ import annotations

import json
from typing import Any

import pytest
from requests.cookies import create_cookie

from pytest_captcha_qa.model.url import Origin
from pytest_captcha_qa.transport import HttpClient, KeptCookie

SHOP = Origin.parse("https://shop.example")
LOCAL = Origin.parse("http://localhost:8000")
SECRET = "a-session-nobody-may-see"


def client_with(origin: Origin, **changes: Any) -> HttpClient:
    client = HttpClient()
    client._jar(origin).set_cookie(create_cookie("sid", SECRET, **changes))
    return client


def test_another_client_goes_on_with_the_cookies_of_each_origin() -> None:
    first, learned = client_with(SHOP, domain="shop.example"), []
    first.remember(LOCAL, {"theme": "dark"})
    written = json.dumps([cookie.to_json() for cookie in first.kept_cookies()])

    second = HttpClient(learn=learned.extend)
    second.take_over(KeptCookie.from_json(raw) for raw in json.loads(written))

    assert second.kept_cookies() == first.kept_cookies()
    assert (second.cookies(SHOP), second.cookies(LOCAL)) == ({"sid": SECRET}, {"theme": "dark"})
    assert SECRET in learned


@pytest.mark.parametrize(
    ("origin", "changes", "expected"),
    [
        (SHOP, {"domain": "shop.example"}, {"domain": "shop.example", "expires": -1, "secure": False}),
        (SHOP, {"domain": ".shop.example", "secure": True}, {"domain": ".shop.example", "secure": True}),
        (SHOP, {"domain": "shop.example", "expires": 2_000_000_000}, {"expires": 2_000_000_000}),
        (SHOP, {"path": "/admin"}, {"path": "/admin"}),
        (LOCAL, {"domain": "localhost.local"}, {"domain": "localhost", "path": "/"}),
        (SHOP, {"rest": {"HttpOnly": None, "SameSite": "strict"}}, {"httpOnly": True, "sameSite": "Strict"}),
        (SHOP, {"rest": {}}, {"httpOnly": False, "sameSite": "Lax"}),
    ],
)
def test_a_browser_is_told_what_the_site_said_of_a_cookie(
    origin: Origin, changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    [kept] = client_with(origin, **changes).kept_cookies()
    shown = KeptCookie.from_json(kept.to_json()).for_browser()
    assert shown | expected == shown
    assert (shown["name"], shown["value"]) == ("sid", SECRET)


def test_a_repr_shows_no_value() -> None:
    [kept] = client_with(SHOP).kept_cookies()
    assert SECRET not in repr(kept)
    assert "sid" in repr(kept)
