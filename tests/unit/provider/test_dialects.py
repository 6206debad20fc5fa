from __future__ import annotations

import re

import pytest

from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.policy import Reaction
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider import wire
from pytest_captcha_qa.provider.codes import CODES, ERRORS
from pytest_captcha_qa.provider.dialects import (
    CAPSKIP,
    CAPTCHAAI,
    DIALECTS,
    TWOCAPTCHA,
    Dialect,
    Method,
    Report,
    unsolved,
)
from pytest_captcha_qa.scope import TokenSource

EVERY_DIALECT = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)


@EVERY_DIALECT
def test_the_table_of_methods_names_every_type(dialect: Dialect) -> None:
    assert set(dialect.methods) == set(CaptchaType)


@EVERY_DIALECT
def test_no_method_sends_what_a_provider_must_not_be_told(dialect: Dialect) -> None:
    never = {
        "key",
        "cookies",
        "useragent",
        "userAgent",
        "proxy",
        "proxytype",
        "pingback",
        "api_server",
        "json_cookies",
    }

    for method in filter(None, dialect.methods.values()):
        names = [it.name for it in method.parameters] + [name for name, _ in method.fixed]
        assert not never & set(names)
        assert len(names) == len(set(names))


@EVERY_DIALECT
def test_a_fixed_address_is_canonical_and_encrypted(dialect: Dialect) -> None:
    assert dialect.base_url is None or not Url.parse(dialect.base_url).origin.is_plain


def test_exactly_the_tokens_of_the_sandbox_are_marked() -> None:
    for dialect in DIALECTS.values():
        marked = {method.mark is not None for method in dialect.methods.values() if method is not None}
        assert marked == {dialect.source is TokenSource.SANDBOX}


def test_every_reaction_has_an_error_and_only_waiting_has_none() -> None:
    assert set(ERRORS) == set(Reaction)
    assert [reaction for reaction, error in ERRORS.items() if error is None] == [Reaction.POLL_ON]


@pytest.mark.parametrize(
    ("code", "reaction"),
    [
        ("CAPCHA_NOT_READY", Reaction.POLL_ON),
        ("ERROR_ZERO_BALANCE", Reaction.CHECK_BALANCE),
        ("ERROR_NO_SLOT_AVAILABLE", Reaction.REQUEUE),
        ("MAX_USER_TURN", Reaction.SLOW_DOWN),
        ("ERROR_TOO_MUCH_REQUESTS", Reaction.SLOW_DOWN),
        ("ERROR_WRONG_CAPTCHA_ID", Reaction.DROP),
        ("ERROR_CAPTCHA_UNSOLVABLE", Reaction.ONCE_MORE),
        ("ERROR_WRONG_USER_KEY", Reaction.STOP),
        ("IP_BANNED", Reaction.STOP),
        ("ERROR_BAD_PARAMETERS", Reaction.FAIL),
        ("ERROR_SERVER_ERROR", Reaction.RETRY),
    ],
)
def test_the_reactions_of_the_requirements_are_the_ones_in_the_table(code: str, reaction: Reaction) -> None:
    assert CODES[code].reaction is reaction


def test_a_zero_balance_means_what_the_service_means_by_it() -> None:
    meant = {name: dialect.codes["ERROR_ZERO_BALANCE"].reaction for name, dialect in DIALECTS.items()}

    assert meant["captchaai"] is Reaction.CHECK_BALANCE  # also while all threads are busy
    assert meant["twocaptcha"] is Reaction.OUT_OF_MONEY
    assert TWOCAPTCHA.codes["ERROR_ZERO_BALANCE"].pause == 60


@EVERY_DIALECT
def test_every_dialect_knows_every_code(dialect: Dialect) -> None:
    assert set(dialect.codes) == set(CODES)


# What each service solves, by the support matrix of the protocol's facts (§2).
UNSOLVED = {
    "captchaai": {CaptchaType.HCAPTCHA, CaptchaType.ALTCHA},
    "capskip": {CaptchaType.HCAPTCHA, CaptchaType.GEETEST_V4},
    "twocaptcha": {CaptchaType.HCAPTCHA, CaptchaType.FRIENDLY_V2},
}


@pytest.mark.parametrize("name", UNSOLVED)
def test_a_service_solves_what_its_own_sources_say(name: str) -> None:
    assert set(CaptchaType) - set(DIALECTS[name].types) == UNSOLVED[name]


def test_a_type_that_a_service_does_not_solve_names_those_that_do() -> None:
    assert unsolved(CAPTCHAAI, CaptchaType.ALTCHA).startswith(
        "captchaai does not solve altcha: use an account of capskip or twocaptcha"
    )


# Parameters that CapSkip's own client refuses by method and version, `json` aside.
CAPSKIP_TAKES = {
    "base64": {"body"},
    "userrecaptcha": {"googlekey", "pageurl", "enterprise", "invisible"},
    "userrecaptcha v3": {"version", "googlekey", "pageurl", "enterprise", "action", "min_score"},
    "turnstile": {"sitekey", "pageurl", "action", "data"},
    "geetest": {"gt", "challenge", "pageurl"},
    "altcha": {"pageurl", "challenge_json"},
    "friendly_captcha": {"sitekey", "pageurl", "version"},
}


def _sent(method: Method, *, min_score: float | None) -> dict[str, str]:
    challenge = Challenge(
        CaptchaType.TURNSTILE, "key", Url.parse("https://shop.example/"), action="a", cdata="c", min_score=min_score,
        data=dict.fromkeys(("challenge", "challenge_json", "image", "gt"), "x"),
    )  # fmt: skip
    return dict(wire.submit_pairs(method, challenge))


@pytest.mark.parametrize("min_score", [None, 0.3])
def test_capskip_is_never_sent_what_it_refuses(min_score: float | None) -> None:
    for method in filter(None, CAPSKIP.methods.values()):
        sent = _sent(method, min_score=min_score)
        name = sent.pop("method") + (" v3" if sent.get("version") == "v3" else "")
        assert sent.pop("json") == "1"
        assert set(sent) <= CAPSKIP_TAKES[name]


@pytest.mark.parametrize("dialect", [CAPSKIP, CAPTCHAAI, TWOCAPTCHA], ids=lambda dialect: dialect.name)
def test_an_enterprise_key_scores_if_the_team_names_a_score(dialect: Dialect) -> None:
    method = dialect.methods[CaptchaType.RECAPTCHA_ENTERPRISE]
    assert method is not None

    scoring, checkbox = _sent(method, min_score=0.3), _sent(method, min_score=None)

    assert scoring | {"version": "v3", "action": "a", "min_score": "0.3", "enterprise": "1"} == scoring
    assert {"version", "min_score"} & set(checkbox) == set()
    assert ("action" in checkbox) == (dialect is CAPTCHAAI)  # where a checkbox has one too


def test_the_kinds_of_proxies_are_those_each_service_takes() -> None:
    assert "SOCKS4" not in CAPSKIP.proxy_types
    assert "SOCKS5H" not in CAPTCHAAI.proxy_types | TWOCAPTCHA.proxy_types
    unproxied = {
        name: {kind for kind, method in dialect.methods.items() if method is not None and not method.proxied}
        for name, dialect in DIALECTS.items()
        if dialect.proxy_types
    }
    assert unproxied == {
        "captchaai": {CaptchaType.IMAGE},
        "capskip": {CaptchaType.IMAGE, CaptchaType.ALTCHA},
        "twocaptcha": {CaptchaType.IMAGE, CaptchaType.ALTCHA, CaptchaType.RECAPTCHA_V3},
    }


def test_only_what_a_service_documents_is_reported_to_it() -> None:
    assert {name: set(dialect.reports) for name, dialect in DIALECTS.items() if dialect.reports} == {
        "captchaai": {Report.BAD},
        "twocaptcha": {Report.GOOD, Report.BAD},
    }


def test_every_code_says_what_it_means_and_pauses_a_sensible_time() -> None:
    for code, entry in CODES.items():
        assert re.fullmatch(r"[A-Z][A-Z_]+(?:: \d{4})?", code)
        assert entry.meaning == entry.meaning.strip(".")
        assert entry.pause is None or 1 <= entry.pause <= 600


def test_the_dialects_know_each_other_by_name() -> None:
    assert {name: dialect.name for name, dialect in DIALECTS.items()} == {name: name for name in DIALECTS}
    assert {name: dialect.base_url for name, dialect in DIALECTS.items()} == {
        "captchaai": "https://ocr.captchaai.com",
        "twocaptcha": "https://2captcha.com",
        "capskip": None,
        "sandbox": None,
    }
