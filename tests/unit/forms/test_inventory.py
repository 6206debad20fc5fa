from __future__ import annotations

import json

from pytest_captcha_qa.forms.inventory import inventory
from pytest_captcha_qa.model.evidence import Exchange
from pytest_captcha_qa.model.url import Url

PAGE = """\
<script src="https://challenges.cloudflare.com/turnstile/v0/api.js"></script>
<form id="search" action="/search?session=s3cret"><input name="q" value="s3cret"></form>
<form id="signup" action="/signup" method="post">
  <input type="hidden" name="csrf" value="s3cret"><input name="email">
  <div class="cf-turnstile" data-sitekey="0x4AAAAAAAexample"></div>
</form>
"""


def page(text: str) -> Exchange:
    return Exchange(
        method="GET", url=Url.parse("https://shop.example/signup"), headers={}, answer_headers={}, text=text, status=200
    )


def test_forms_and_widgets_are_named_and_no_value_is() -> None:
    told = inventory(page(PAGE))
    widget = "turnstile at div.cf-turnstile in form#signup (action '/signup') (sitekey '0x4AAAAAAAexample')"
    assert told == {
        "forms": [
            {"form": "form#search (action '/search')", "method": "get", "fields": ["q"]},
            {"form": "form#signup (action '/signup')", "method": "post", "fields": ["csrf", "email"]},
        ],
        "widgets": {"turnstile": [widget]},
        "scripts": ["turnstile"],
        "complete": True,
    }
    assert "s3cret" not in json.dumps(told)


def test_a_page_with_hundreds_of_forms_is_told_in_part() -> None:
    told = inventory(page("<form><input name=a></form>" * 300))
    assert len(told["forms"]) == 20


def test_a_page_that_cannot_mean_one_thing_says_why() -> None:
    told = inventory(page("<base href='https://user:pw@evil.example/'><form></form>"))
    assert told["unreadable"].startswith("the <base> of https://shop.example/signup is refused")


def test_an_empty_page_has_nothing() -> None:
    assert inventory(page(""))["forms"] == []
