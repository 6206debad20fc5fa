from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import pytest

from pytest_captcha_qa.config.explaining import explain
from pytest_captcha_qa.config.settings import Settings
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.waiver import Waiver

Loader = Callable[..., Settings]


def in_days(days: int) -> date:
    return datetime.now(UTC).date() + timedelta(days)


def waiver(until: object = None, **keys: str) -> str:
    lines = {"form": '"signup"', "reason": '"the backend is being replaced"', **keys}
    lines["until"] = str(until or in_days(3))
    return "\n[[waivers]]\n" + "".join(f"{key} = {value}\n" for key, value in lines.items() if value)


@pytest.mark.parametrize("days", [-400, -1, 0, 1, 14])
def test_a_waiver_belongs_to_the_environments_that_have_its_form(load_text: Loader, small: str, days: int) -> None:
    settings = load_text(small + waiver(in_days(days), ticket='"QA-1"'))
    expected = Waiver("signup", in_days(days), "the backend is being replaced", "QA-1")
    assert settings.environment("staging").waivers == (expected,)
    assert settings.environment("demo").waivers == ()


def test_one_that_expired_is_no_mistake_of_the_file(load_text: Loader, small: str) -> None:
    (yesterday,) = load_text(small + waiver(in_days(-1))).environment("staging").waivers
    (today,) = load_text(small + waiver(in_days(0))).environment("staging").waivers
    assert (yesterday.expired(in_days(0)), today.expired(in_days(0))) == (True, False)


def test_an_environment_may_allow_longer_waivers(load_text: Loader, small: str) -> None:
    longer = small.replace("[env.staging]", "[env.staging]\nwaivers_max_days = 30")
    assert load_text(longer + waiver(in_days(30))).environment("staging").waivers
    with pytest.raises(ConfigError, match="is 31 days from today; a waiver lasts at most 30 days"):
        load_text(longer + waiver(in_days(31)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (waiver(in_days(15)), r"waivers.0.until: is 15 days from today; a waiver lasts at most 14 days \(waivers_max"),
        (waiver(form='"sginup"'), "waivers.0.form: 'sginup' is no form; did you mean 'signup'"),
        (waiver(form=""), "waivers.0.form: is missing: the name of the form"),
        (waiver(reason=""), "waivers.0.reason: is missing: why the failure is accepted"),
        (waiver(reason='""'), "waivers.0.reason: must not be empty"),
        (waiver('"2026-12-10"'), "waivers.0.until: must be a date without quotes, such as 2026-12-10, not a text"),
        (waiver("2026-12-10T08:00:00Z"), "waivers.0.until: must be a date .*, not a date with a time"),
        (waiver(form="", rule='"p90"'), "waivers.0.rule: 'p90' is no rule of the gate; did you mean 'max_p90'"),
        (waiver(in_days(15), form="", rule='"max_p90"'), "waivers.0.until: is 15 days from today; .* at most 14 days"),
        (waiver(form="", probe='"M12"'), "waivers.0.form: is missing: the name of the form"),
        (waiver(rule='"max_p90"', probe='"M12"'), "waivers.0.probe: is waived at one form, and a rule of the gate by"),
        (waiver(form="", rule='"max_p90"') * 2, "waivers.1.rule: max_p90 of every form is waived twice"),
        (waiver(probe='"replay"'), "waivers.0.probe: must be the id of a probe, such as M12"),
        (waiver(probe='"M12"') + waiver(probe='"M12"'), "waivers.1.form: probe M12 of 'signup' is waived twice"),
        (waiver(tickt='"QA-1"'), "waivers.0.tickt: there is no such key; did you mean 'ticket'"),
        ("\n[waivers]\n", r"waivers: must be written as \[\[waivers\]\], once for each"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(load_text: Loader, small: str, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        load_text(small + text)
    assert len(refused.value.message.splitlines()) == 1


def test_a_rule_of_the_gate_is_waived_for_one_form_or_for_everything(load_text: Loader, small: str) -> None:
    rules = waiver(rule='"max_p90"') + waiver(form="", rule='"max_p90"')
    settings = load_text(small + rules)
    said = [(waiver.form, waiver.rule) for waiver in settings.rule_waivers]
    assert said == [("signup", "max_p90"), ("", "max_p90")]
    assert settings.environment("staging").waivers == settings.rule_waivers
    assert str(settings.rule_waivers[1]) == "max_p90: the backend is being replaced"


def test_each_mistake_has_the_line_of_its_own_waiver(load_text: Loader, small: str) -> None:
    text = small + waiver() + waiver(ticket='"QA-2"')
    with pytest.raises(ConfigError) as refused:
        load_text(text)
    line = max(number for number, line in enumerate(text.splitlines(), 1) if line.startswith("form ="))
    assert (
        refused.value.message
        == f"captcha-qa.toml:{line}: waivers.1.form: 'signup' is waived twice; keep one of the two"
    )


def test_the_waivers_of_a_form_are_part_of_what_check_shows(load_text: Loader, small: str) -> None:
    settings = load_text(small + waiver(in_days(3), ticket='"QA-1"'))
    rows = {row.key: (row.text, row.source) for row in explain(settings, "staging").rows}
    last_line = small.count("\n") + len(waiver(ticket='"QA-1"').splitlines())
    assert rows["waivers.signup.until"] == (in_days(3).isoformat(), f"captcha-qa.toml:{last_line}")
    assert rows["waivers.signup.ticket"][0] == "QA-1"
