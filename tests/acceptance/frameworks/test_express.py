"""A shop on Express: express-session, csrf-csrf's double-submit cookie, JSON, and GraphQL by graphql-http."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

INVITE = """\
[forms.invite]
path = "/invite"
type = "turnstile"
fields = { email = "{identity.email}" }
success = { status = 303, location = "/shop" }
refused = { status = 422, text = 'class="captcha"' }
"""
SIGNED_IN = """\
import os, re
import pytest


@pytest.fixture
def captcha_http(captcha_http):
    csrf = re.search('name="_csrf" value="([^"]+)"', captcha_http.get("/login").text)[1]
    form = {"_csrf": csrf, "user": "qa", "password": os.environ["QA_PASSWORD"]}
    answer = captcha_http.post("/login", data=form)
    assert answer.location.path == "/invite", answer
    return captcha_http
"""


def test_a_form_behind_a_login_is_tested_once_the_session_is_signed_in(
    check: Callable[..., Any], express_shop: str
) -> None:
    checked = check(express_shop, INVITE, files={"conftest.py": SIGNED_IN})
    assert checked.is_sound("invite")
    invited = checked.done["invited"]
    assert len(set(invited)) == 2
    assert all(line.endswith(" by qa") for line in invited)


CSRF = 'csrf = { cookie = "XSRF-TOKEN", header = "X-XSRF-TOKEN" }\n'
ORDER = """\
[forms.order]
path = "/shop"
type = "turnstile"
success = { status = 201, json = { ok = true } }
refused = { status = 422, json = { "errors.0.code" = "captcha" } }
[forms.order.submit]
url = "/api/orders"
token_at = "captcha.token"
[forms.order.submit.body]
customer = { email = "{identity.email}" }
items = [{ sku = "A1", count = 2 }, { sku = "B2", count = 1 }]
"""


def test_a_single_page_application_is_tested_with_nested_json_and_its_csrf_header(
    check: Callable[..., Any], express_shop: str
) -> None:
    checked = check(express_shop, ORDER.replace("[forms.order.submit.body]", f"{CSRF}[forms.order.submit.body]"))
    assert checked.is_sound("order")
    orders = checked.done["orders"]
    assert [order["count"] for order in orders] == [3, 3]
    assert len({order["email"] for order in orders}) == 2


ACCOUNT = '''\
[forms.account]
path = "/shop"
type = "turnstile"
success = { status = 200, text = '"signUp":{"id"', absent = '"errors"' }
refused = { status = 200, json = { "errors.0.extensions.code" = "CAPTCHA" } }
[forms.account.submit]
url = "/graphql"
token_at = "variables.captchaToken"
csrf = { cookie = "XSRF-TOKEN", header = "X-XSRF-TOKEN" }
[forms.account.submit.body]
operationName = "SignUp"
query = """
mutation SignUp($input: SignUpInput!, $captchaToken: String) {
  signUp(input: $input, captchaToken: $captchaToken) {id email}
}
"""
variables = { input = { email = "{identity.email}", name = "{identity.name}", newsletter = true } }
'''


def test_a_graphql_mutation_is_tested(check: Callable[..., Any], express_shop: str) -> None:
    checked = check(express_shop, ACCOUNT)
    assert checked.is_sound("account")
    accounts = checked.done["accounts"]
    assert [account["newsletter"] for account in accounts] == [True, True]
    assert len({account["email"] for account in accounts}) == 2
