"""What a team may set to reach its environment, and what is refused before anything is sent."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.transport import HttpAccess, HttpClient


@pytest.mark.parametrize(
    ("access", "name"),
    [
        (HttpAccess(ca_file="/nowhere/cert.pem"), "ca_file"),
        (HttpAccess(client_cert_file="/nowhere/cert.pem"), "client_cert_file"),
    ],
)
def test_a_certificate_file_that_is_not_there_is_a_configuration_error(access: HttpAccess, name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} names /nowhere/cert.pem"):
        HttpClient(access)


_RESERVED = [
    "User-Agent",
    "Host",
    "Cookie",
    "Content-Length",
    "Content-Type",
    "Content-Encoding",
    "Accept-Encoding",
    "Transfer-Encoding",
    "Connection",
    "Keep-Alive",
    "Proxy-Authorization",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Upgrade",
    "Expect",
    "X-Captcha-QA-Run",
]


@pytest.mark.parametrize("spelling", [str, str.lower, str.upper])
@pytest.mark.parametrize("name", _RESERVED)
def test_a_header_that_is_not_the_teams_to_set_is_refused_at_once(name: str, spelling: Callable[[str], str]) -> None:
    access = HttpAccess({"X-Gate": "a", spelling(name): "hidden"}, where="env.qa.http")

    with pytest.raises(ConfigError, match=rf"^env\.qa\.http\.headers sets {spelling(name)}, which ") as refused:
        HttpClient(access, marks={"X-Captcha-QA-Run": "run-1"})

    assert "hidden" not in str(refused.value)


_UNSENDABLE = ["hidden\r\nX-B: c", "hidden\n", "\x00hidden", "hidden\x1b[2J", "hidden\x7f", "hidden €", "hidden\udce9"]


@pytest.mark.parametrize(
    "access",
    [
        *[HttpAccess({"X-Gate": value}, where="env.qa.http") for value in [*_UNSENDABLE, " hidden", "hidden\t"]],
        *[HttpAccess(cookies={"gate": value}, where="env.qa.http") for value in [*_UNSENDABLE, "hidden; b=c"]],
        HttpAccess({"hidden name": "x"}, where="env.qa.http"),
        HttpAccess({"": "x"}, where="env.qa.http"),
        HttpAccess(cookies={"hidden=name": "x"}, where="env.qa.http"),
        HttpAccess(basic_auth=("qa", "hidden\udce9"), where="env.qa.http"),
        HttpAccess(basic_auth=("qa", "hidden\n"), where="env.qa.http"),
        HttpAccess(proxy="hidden.example:8080", where="env.qa.http"),
        HttpAccess(proxy="socks5://hidden.example", where="env.qa.http"),
        HttpAccess(proxy="http://", where="env.qa.http"),
        HttpAccess(proxy="http://hidden.example:port", where="env.qa.http"),
    ],
)
def test_what_cannot_be_sent_is_a_configuration_error_that_names_its_setting(access: HttpAccess) -> None:
    setting = "headers" if access.headers else "cookie" if access.cookies else "basic_auth|proxy"

    with pytest.raises(ConfigError, match=rf"^env\.qa\.http\.({setting}) ") as refused:
        HttpClient(access)

    assert "hidden" not in str(refused.value)


def test_what_a_team_needs_to_reach_its_site_is_taken() -> None:
    HttpClient(
        HttpAccess(
            {"Authorization": "Bearer a.b-c==", "CF-Access-Client-Id": "x", "X-Name": "Zoë\tB", "X-Empty": ""},
            {"gate": 'a b="c", d', "empty": ""},
            ("qa", "pass: wörd"),
            proxy="http://user:p%40ss@proxy.example:3128",
        ),
        marks={"X-Captcha-QA-Run": "run-1"},
    )
