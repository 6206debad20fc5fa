"""docs/providers.md says of accounts and reactions what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_captcha_qa.config.accounts import PROVIDERS, ProviderName
from pytest_captcha_qa.config.sources import load
from pytest_captcha_qa.engine import breaker, events
from pytest_captcha_qa.engine.reactions import BUSY, SILENCE, SUBMIT_FAULTS
from pytest_captcha_qa.errors import all_errors
from pytest_captcha_qa.provider.dialects import CAPSKIP, CAPTCHAAI, TWOCAPTCHA

PAGE = (Path(__file__).parents[2] / "docs" / "providers.md").read_text("utf-8")


def test_the_accounts_load(tmp_path: Path) -> None:
    [toml] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "captcha-qa.toml").write_text(toml)
    settings = load(tmp_path, tmp_path, options={}, ini={}, environ={})
    assert {table.provider for table in settings.catalog.accounts.values()} == {
        ProviderName.CAPTCHAAI,
        ProviderName.TWOCAPTCHA,
        ProviderName.CAPSKIP,
    }


def test_every_code_of_the_reactions_exists() -> None:
    codes = re.findall(r"^\|.*\| `(\w+)` \|$", PAGE, re.MULTILINE)
    assert len(codes) >= 9
    assert set(codes) <= set(all_errors())


def test_the_figures_are_those_of_the_code() -> None:
    first, second = SUBMIT_FAULTS.pause(1), SUBMIT_FAULTS.pause(2)
    assert f"three tries in all, {first:g} and {second:g} s apart" in PAGE
    assert ", ".join(f"{BUSY.pause(failures):g}" for failures in range(1, 4)) in PAGE
    assert (breaker.FAILURES, breaker.SECONDS, SILENCE) == (3, 10, 60)
    assert f"{PROVIDERS[ProviderName.CAPSKIP].patience:g} seconds" in PAGE
    assert f"asked again after {CAPTCHAAI.interval:g} s (CapSkip: {CAPSKIP.interval:g} s)" in PAGE
    assert f"{CAPTCHAAI.key_length} characters" in PAGE
    assert {str(report) for report in TWOCAPTCHA.reports} <= set(re.findall(r"\w+", PAGE))


def test_every_event_it_names_is_one() -> None:
    known = {value for name, value in vars(events).items() if name.isupper()}
    named = set(re.findall(r"`((?:submit|token)_\w+)`", PAGE))
    assert named <= known
