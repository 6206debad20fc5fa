"""`policy` of a form, `probe_severity` of a run, and waivers of probes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_captcha_qa.config.settings import Settings
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.probing import Fault, ProbePolicy, Severity
from pytest_captcha_qa.model.waiver import Waiver
from pytest_captcha_qa.wiring.probing import unusable_waivers

Loader = Callable[..., Settings]


def with_policy(small: str, policy: str) -> str:
    return small.replace("[forms.signup]", f"[forms.signup]\npolicy = {{ {policy} }}")


def test_a_policy_is_read(load_text: Loader, small: str) -> None:
    text = with_policy(small, 'grace = true, siblings = ["/api/signup"], flow = ["/resend"], open_for = ["timeout"]')
    assert load_text(text).environment("staging").forms["signup"].probes == ProbePolicy(
        grace=True, siblings=("/api/signup",), flow=("/resend",), open_for=(Fault.TIMEOUT,)
    )
    assert load_text(small).environment("staging").forms["signup"].probes == ProbePolicy()


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ('siblings = ["/a", "/a"]', r"policy.siblings.1: is listed twice: /a"),
        ('siblings = ["https://elsewhere.example/a"]', "https://elsewhere.example is not among origins"),
        ('flow = ["https://elsewhere.example/a"]', "policy.flow.0"),
        ("payment_test_mode = true", "policy.payment_test_mode: means nothing"),
        ('open_for = ["429"]', "policy.open_for"),
        ("graze = true", "policy.graze"),
    ],
)
def test_a_mistake_in_a_policy_is_told(load_text: Loader, small: str, policy: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_text(with_policy(small, policy))


def test_the_severity_that_counts_comes_from_option_or_file(load_text: Loader, small: str) -> None:
    assert load_text(small).run.probe_severity is Severity.MEDIUM
    from_file = small + '\n[run]\nprobe_severity = "high"\n'
    assert load_text(from_file).run.probe_severity is Severity.HIGH
    assert load_text(from_file, options={"captcha_probe_severity": "low"}).run.probe_severity is Severity.LOW
    with pytest.raises(ConfigError, match="did you mean 'high'"):
        load_text(small, options={"captcha_probe_severity": "hihg"})


def test_waivers_of_unknown_and_of_critical_probes_are_refused() -> None:
    from datetime import date

    def waiver(probe: str | None) -> Waiver:
        return Waiver("signup", date(2026, 12, 1), "known", probe=probe)

    assert unusable_waivers([waiver(None), waiver("M12")]) == []
    assert unusable_waivers([waiver("M93"), waiver("M01")]) == [
        "waivers: unknown probe 'M93' in the waiver of form 'signup'; did you mean 'M39'?",
        "waivers: M01 (form 'signup') is critical; a critical probe is never waived",
    ]
