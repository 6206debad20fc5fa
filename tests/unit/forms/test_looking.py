"""A page as it is read by probes: whose it is, before anything is said of it."""

from __future__ import annotations

import pytest

from pytest_captcha_qa.errors import AccessNotConfigured
from pytest_captcha_qa.forms.looking import look
from pytest_captcha_qa.model.url import Url

PAGE = "https://shop.example/signup"
LOGIN = '<form method="post"><input name="user"><input name="password" type="password"></form>'
WIDGET = '<form><input name="email"><div class="cf-turnstile" data-sitekey="0x4AAAAAAADnPIDROrmt1Wwj"></div></form>'


@pytest.fixture
def seen(site, spec, grants, deadline):
    return lambda: look(site, spec(fields={"email": "{identity.email}"}), Url.parse(PAGE), grants, deadline)


def test_a_login_in_place_of_the_page_is_not_judged(site, seen):
    site.redirect(PAGE, "/login")
    site.page("https://shop.example/login", LOGIN)
    with pytest.raises(AccessNotConfigured, match="leads to a login"):
        seen()


def test_a_page_without_a_widget_is_seen_as_it_is(site, seen):
    site.page(PAGE, "<p>soon</p>")
    assert seen().sitekeys == ()
    site.page(PAGE, WIDGET)
    assert seen().sitekeys == ("0x4AAAAAAADnPIDROrmt1Wwj",)
