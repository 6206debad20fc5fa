from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_captcha_qa.config.options import OPTIONS
from pytest_captcha_qa.plugin import options


class Given:
    """A pytest.Config that knows what a command line and an ini file say."""

    def __init__(self, said: dict[str, object] | None = None, ini: dict[str, object] | None = None) -> None:
        self._said = said or {}
        self._ini = ini or {}

    def getoption(self, dest: str, default: object = None) -> object:
        return self._said.get(dest, default)

    def getini(self, name: str) -> object:
        return self._ini.get(name)


class Mounted:
    """A pytest.Parser that keeps what is added to it."""

    def __init__(self) -> None:
        self.options: dict[str, dict[str, Any]] = {}
        self.inis: dict[str, str] = {}

    def getgroup(self, name: str, description: str = "") -> SimpleNamespace:
        return SimpleNamespace(addoption=lambda flag, **rest: self.options.update({flag: rest}))

    def addini(self, name: str, help: str, type: object = None, default: object = None) -> None:
        self.inis[name] = help


@pytest.fixture
def mounted() -> Mounted:
    parser = Mounted()
    options.mount(parser)  # type: ignore[arg-type]
    return parser


def test_every_row_of_the_table_is_an_option(mounted: Mounted) -> None:
    assert list(mounted.options) == [row.flag for row in OPTIONS]
    assert list(mounted.inis) == [row.ini for row in OPTIONS if row.ini]


def test_no_option_has_a_default_of_its_own_that_would_hide_the_weaker_sources(mounted: Mounted) -> None:
    assert {rest.get("default") for rest in mounted.options.values()} == {None}


def test_help_tells_default_and_choices(mounted: Mounted) -> None:
    assert mounted.options["--captcha-outage"]["metavar"] == "skip|error"
    assert mounted.options["--captcha-records"]["help"].endswith("(default: reports/records)")
    assert mounted.options["--captcha-allow-production"]["action"] == "append"


def test_an_early_option_follows_the_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CAPTCHA_QA_ENV", raising=False)
    assert options.early(Given(), "captcha_env") is None  # type: ignore[arg-type]
    ini = {"captcha_env": "from-ini"}
    assert options.early(Given(ini=ini), "captcha_env") == "from-ini"  # type: ignore[arg-type]
    monkeypatch.setenv("CAPTCHA_QA_ENV", "from-variable")
    assert options.early(Given(ini=ini), "captcha_env") == "from-variable"  # type: ignore[arg-type]
    said = {"captcha_env": "from-option"}
    assert options.early(Given(said, ini), "captcha_env") == "from-option"  # type: ignore[arg-type]


def test_an_early_option_that_does_not_fit_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPTCHA_QA_REQUIRED", "perhaps")
    with pytest.raises(pytest.UsageError, match="CAPTCHA_QA_REQUIRED: 'perhaps' is neither yes nor no"):
        options.early(Given(), "captcha_required")  # type: ignore[arg-type]


@pytest.mark.parametrize("nothing", [None, ""])
def test_an_empty_ini_value_counts_as_not_given(nothing: object) -> None:
    assert options.ini(Given(ini={"captcha_env": nothing})) == {}  # type: ignore[arg-type]
