from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from pytest_captcha_qa.config.rows import gate_rows
from pytest_captcha_qa.config.settings import Settings
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.gate import GateMode, GateRules, Rule, Rules

Loader = Callable[..., Settings]

WHOLE = """
[gate]
min_verify_rate = 0.99
min_coverage = 1
max_age_of_pass = "3d"
max_resolve_share = 0.02
max_p90 = { page = 3, submit = 3 }
warn_p90 = { wait = { turnstile = 10, recaptcha_v2 = 60 } }
regression = { alpha = 0.05 }

[gate.types.turnstile]
max_p90 = { page = 5 }

[gate.projects.default]
min_verify_rate = 0.98

[gate.forms.signup]
min_verify_rate = 0.95
require_data = ["min_verify_rate"]
"""


def rules_of(settings: Settings) -> GateRules:
    assert settings.gate is not None
    return settings.gate


def test_without_the_table_there_is_no_gate(load_text: Loader, small: str) -> None:
    settings = load_text(small)
    assert (settings.gate, settings.run.gate, settings.run.baseline) == (None, None, None)
    assert list(gate_rows(settings)) == []


def test_what_stands_lower_goes_before_the_rest(load_text: Loader, small: str) -> None:
    gate = rules_of(load_text(small + WHOLE))
    assert (gate.min_coverage, gate.own_forms) == (1, {"signup"})
    hcaptcha, turnstile = gate.of("hcaptcha", project="beta"), gate.of("turnstile")
    assert (hcaptcha.min_verify_rate, turnstile.min_verify_rate) == (0.99, 0.98)
    assert hcaptcha.max_age_of_pass == timedelta(days=3)
    assert hcaptcha.limits(Rule.MAX_P90, "hcaptcha") == {"page": 3, "submit": 3}
    assert turnstile.limits(Rule.MAX_P90, "turnstile") == {"page": 5, "submit": 3}
    assert turnstile.limits(Rule.WARN_P90, "turnstile") == {"wait": 10}
    assert hcaptcha.limits(Rule.WARN_P90, "hcaptcha") == {}
    assert (hcaptcha.alpha, hcaptcha.min_effect) == (0.05, 0.15)
    signup = gate.of("recaptcha_v2", form="signup")
    assert (signup.min_verify_rate, signup.requires(Rule.MIN_VERIFY_RATE)) == (0.95, True)
    assert not signup.requires(Rule.MAX_P90)


@pytest.mark.parametrize(
    ("written", "expected"), [("true", frozenset(Rule)), ("false", frozenset()), ("[]", frozenset())]
)
def test_data_may_be_required_by_all_rules(load_text: Loader, small: str, written: str, expected: object) -> None:
    assert rules_of(load_text(f"{small}\n[gate]\nrequire_data = {written}\n")).all == Rules(require_data=expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("min_verify_rte = 0.9", "gate.min_verify_rte: there is no such key; did you mean 'min_verify_rate'?"),
        ("min_verify_rate = 99", "gate.min_verify_rate: must be at most 1, not '99'"),
        ("min_verify_rate = -0.1", "gate.min_verify_rate: must be at least 0, not '-0.1'"),
        ('min_coverage = "all"', "gate.min_coverage: must be a number, not a text"),
        ("max_resolve_share = true", "gate.max_resolve_share: must be a number, not true or false"),
        ("max_age_of_pass = 3", "gate.max_age_of_pass: must be a text in quotes, not a whole number"),
        ('max_age_of_pass = "3 days"', 'gate.max_age_of_pass: must be a whole number with h, d or w, such as "3d"'),
        ('max_age_of_pass = "0d"', "gate.max_age_of_pass: must be a whole number with h, d or w"),
        ("max_p90 = { pgae = 3 }", "gate.max_p90.pgae: 'pgae' is no time that can be limited; did you mean 'page'?"),
        ("max_p90 = { verify_rate = 3 }", "gate.max_p90.verify_rate: 'verify_rate' is no time that can be limited"),
        ("max_p90 = { page = 0 }", "gate.max_p90.page: must be seconds, more than 0, not '0'"),
        ("max_p90 = { page = true }", "gate.max_p90.page: must be seconds, more than 0, not 'True'"),
        ("max_p90 = { page = nan }", "gate.max_p90.page: must be seconds, more than 0, not 'nan'"),
        ("max_p90 = 3", "gate.max_p90: must be a table, not a whole number"),
        ("warn_p90.wait = { turnstil = 3 }", "gate.warn_p90.wait.turnstil: 'turnstil' is no captcha type; did you"),
        ('warn_p90.wait = { turnstile = "3" }', "gate.warn_p90.wait.turnstile: must be seconds, more than 0, not '3'"),
        ("regression = { alpha = 0 }", "gate.regression.alpha: must be more than 0, not '0'"),
        ("regression = { alpha = 0.6 }", "gate.regression.alpha: must be at most 0.5, not '0.6'"),
        ("regression = { min_efect = 1 }", "gate.regression.min_efect: there is no such key; did you mean 'min_e"),
        ('require_data = ["max_p95"]', "gate.require_data: 'max_p95' is no rule of the gate; did you mean"),
        ('require_data = "all"', "gate.require_data: must be true, or a list of rules"),
        ("forms.sginup.min_verify_rate = 1", "gate.forms.sginup: 'sginup' is no form; did you mean 'signup'?"),
        ("types.turnstil.min_verify_rate = 1", "gate.types.turnstil: 'turnstil' is no captcha type; did you mean 'tu"),
        ("projects.alfa.min_verify_rate = 1", "gate.projects.alfa: 'alfa' is no project"),
        ("forms.signup.min_coverage = 1", "gate.forms.signup.min_coverage: there is no such key; did you mean"),
        ("forms.signup.max_p90.pgae = 1", "gate.forms.signup.max_p90.pgae: 'pgae' is no time"),
        ("forms.signup = 1", "gate.forms.signup: must be a table, not a whole number"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_in_a_sentence_with_its_place(load_text: Loader, small: str, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_text(f"{small}\n[gate]\n{text}\n")
    (line,) = refused.value.message.splitlines()
    assert line.partition(": ")[2].startswith(said)
    assert line.partition(": ")[0].startswith("captcha-qa.toml:")


def test_an_environment_has_no_gate_of_its_own(load_text: Loader, small: str) -> None:
    with pytest.raises(ConfigError, match=r"env.staging.gate: is not in this version yet; write \[gate\]"):
        load_text(small.replace("[env.staging]", "[env.staging]\ngate = {}"))


def test_check_shows_each_rule_with_its_line(load_text: Loader, small: str) -> None:
    text = small + WHOLE
    rows = {row.key: (row.text, row.source) for row in gate_rows(load_text(text))}
    line = text.splitlines().index('max_age_of_pass = "3d"') + 1
    assert rows["gate.max_age_of_pass"] == ("3d", f"captcha-qa.toml:{line}")
    assert rows["gate.warn_p90.wait.turnstile"][0] == "10"
    assert rows["gate.regression.min_effect"] == ("0.15", "default")
    assert rows["gate.forms.signup.require_data"][0] == "min_verify_rate"


def test_mode_and_baseline_come_from_the_strongest_source_that_says_something(load_text: Loader, small: str) -> None:
    text = small + '\n[run]\ngate = "report"\nbaseline = "1.2.0"\n'
    assert load_text(text).run.gate is GateMode.REPORT
    strong = load_text(text, options={"captcha_gate": "enforce"}, environ={"CAPTCHA_QA_BASELINE": "previous"})
    assert (strong.run.gate, strong.run.baseline) == (GateMode.ENFORCE, "previous")
    with pytest.raises(ConfigError, match="--captcha-gate: 'enforced' is not one of off, report, enforce; did you"):
        load_text(text, options={"captcha_gate": "enforced"})
