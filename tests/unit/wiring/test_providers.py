from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from pytest_captcha_qa.config.accounts import ProviderName
from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.wiring.engine import Engine
from pytest_captcha_qa.wiring.providers import spoken_provider, stand_in_of, unsolvable_forms


@pytest.fixture
def at_capskip(environment: Callable[..., EnvironmentConfig]) -> EnvironmentConfig:
    found = environment()
    return replace(found, account=replace(found.account, provider=ProviderName.CAPSKIP))


def test_a_capskip_account_needs_no_key_but_an_address(at_capskip: EnvironmentConfig) -> None:
    assert repr(spoken_provider(at_capskip.account)) == "<HttpProvider capskip at http://127.0.0.1:9/, key ***>"
    with pytest.raises(ConfigError, match="capskip has no fixed address"):
        spoken_provider(replace(at_capskip.account, address=None))


def test_forms_that_the_account_cannot_solve_are_named_with_accounts_that_can(at_capskip: EnvironmentConfig) -> None:
    altcha = replace(at_capskip.forms["login"], type=CaptchaType.ALTCHA)
    geetest = replace(at_capskip.forms["by_lookup"], type=CaptchaType.GEETEST_V4)
    found = replace(at_capskip, forms={"login": altcha, "by_lookup": geetest})

    [told] = unsolvable_forms(found, found.forms)

    assert told.startswith("forms.by_lookup.type: capskip does not solve geetest_v4: use an account of captchaai")
    assert unsolvable_forms(found, ["login"]) == []


def test_a_slow_service_is_given_its_time(at_capskip: EnvironmentConfig, engine: Callable[..., Engine]) -> None:
    assert engine().services().timeouts.solve == 0
    assert engine(at_capskip).services().timeouts.solve == 450


def test_a_stand_in_is_spoken_to_as_a_session_of_its_own(
    environment: Callable[..., EnvironmentConfig], engine: Callable[..., Engine]
) -> None:
    found = environment(provider="standin")
    provider = engine(found).services().provider
    assert re.fullmatch(r"<StandInProvider over <StandIn at http://127.0.0.1:9, session run-\w+>>", repr(provider))
    assert stand_in_of(found).session != stand_in_of(found).session


def test_only_a_stand_in_answers_as_a_test_says(environment: Callable[..., EnvironmentConfig]) -> None:
    with pytest.raises(ConfigError, match="is one of sandbox, which answers about no token as a test says"):
        stand_in_of(environment())
    assert repr(stand_in_of(environment(), Url.parse("http://127.0.0.1:7"))).startswith(
        "<StandIn at http://127.0.0.1:7,"
    )


def test_forms_without_a_vendor_are_told_before_the_run(environment: Callable[..., EnvironmentConfig]) -> None:
    found = environment(provider="standin")
    found = replace(found, forms={"login": replace(found.forms["login"], type=CaptchaType.IMAGE)})
    [told] = unsolvable_forms(found, ["login"])
    assert told.startswith("forms.login.type: image is checked by your own site")
