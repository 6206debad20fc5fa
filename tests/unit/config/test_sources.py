from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_captcha_qa.config.settings import Settings
from pytest_captcha_qa.config.sources import find, load, project_root
from pytest_captcha_qa.errors import ConfigError, MissingSecret

Loader = Callable[..., Settings]
SMALL = '[accounts.a]\nprovider = "testkeys"\n'


def test_the_nearest_file_upward_is_found(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "captcha-qa.toml").write_text(SMALL)
    found = find(below, tmp_path)
    assert found is not None
    assert (found.path, found.label) == (tmp_path / "captcha-qa.toml", "captcha-qa.toml")
    (tmp_path / "a" / "pyproject.toml").write_text('[tool.captcha-qa.accounts.a]\nprovider = "testkeys"\n')
    nearer = find(below, tmp_path)
    assert nearer is not None
    assert nearer.label == "a/pyproject.toml"


def test_nothing_above_the_root_is_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "captcha-qa.toml").write_text(SMALL)
    assert find(root, root) is None


def test_a_project_elsewhere_brings_its_own_file(tmp_path: Path) -> None:
    here, root = tmp_path / "here" / "below", tmp_path / "there"
    here.mkdir(parents=True)
    root.mkdir()
    (tmp_path / "captcha-qa.toml").write_text(SMALL)
    (here.parent / "captcha-qa.toml").write_text(SMALL)
    assert find(here, root) is None
    (here / "captcha-qa.toml").write_text(SMALL)
    assert (found := find(here, root)) is not None
    assert found.path == here / "captcha-qa.toml"
    (root / "captcha-qa.toml").write_text(SMALL)
    assert (found := find(here, root)) is not None
    assert found.path == root / "captcha-qa.toml"


def test_a_pyproject_without_our_table_is_passed_by(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "captcha-qa.toml").write_text(SMALL)
    found = find(tmp_path / "a", tmp_path)
    assert found is not None
    assert found.label == "captcha-qa.toml"


def test_two_configurations_in_one_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "captcha-qa.toml").write_text(SMALL)
    (tmp_path / "pyproject.toml").write_text("[tool.captcha-qa]\n")
    with pytest.raises(ConfigError, match="both configure; keep one of them"):
        find(tmp_path, tmp_path)


def test_our_table_in_pyproject_must_be_a_table(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\ncaptcha-qa = 3\n")
    with pytest.raises(ConfigError, match=r"\[tool.captcha-qa\] must be a table"):
        find(tmp_path, tmp_path)


def test_without_a_file_the_built_in_environment_is_left(tmp_path: Path) -> None:
    settings = load(tmp_path, tmp_path, options={}, ini={}, environ={})
    assert settings.names == ("demo",)
    assert settings.file is None
    assert settings.environment("demo").name == "demo"


@pytest.mark.parametrize(
    ("options", "ini", "environ", "named"),
    [
        ({"captcha_config": "x.toml"}, {}, {}, "--captcha-config names x.toml, which does not exist"),
        ({}, {"captcha_config": "x.toml"}, {}, "ini captcha_config names x.toml, which does not exist"),
        ({}, {}, {"CAPTCHA_QA_CONFIG": "x.toml"}, "CAPTCHA_QA_CONFIG names x.toml, which does not exist"),
        ({"captcha_config": "."}, {}, {}, "which is a folder"),
    ],
)
def test_a_file_that_was_named_must_exist(
    options: dict[str, object], ini: dict[str, object], environ: dict[str, str], named: str, tmp_path: Path
) -> None:
    (tmp_path / "captcha-qa.toml").write_text(SMALL)
    with pytest.raises(ConfigError, match=named):
        load(tmp_path, tmp_path, options=options, ini=ini, environ=environ)


def test_a_named_pyproject_must_have_our_table(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    with pytest.raises(ConfigError, match=r"has no table \[tool.captcha-qa\]"):
        load(tmp_path, tmp_path, options={"captcha_config": "pyproject.toml"}, ini={}, environ={})


def test_a_fault_within_a_named_file_is_not_blamed_on_the_option(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("[env\n")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, tmp_path, options={"captcha_config": "x.toml"}, ini={}, environ={})
    assert caught.value.message.startswith("x.toml:1: this is not valid TOML: ")
    assert "--captcha-config" not in caught.value.message


def test_an_unreadable_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "captcha-qa.toml").write_text(SMALL)

    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ConfigError, match=r"captcha-qa.toml cannot be read: Permission denied"):
        load(tmp_path, tmp_path, options={}, ini={}, environ={})


FILE = '[run]\nrecords = "file"\n'


@pytest.mark.parametrize(
    ("text", "ini", "environ", "options", "records", "source"),
    [
        ("", {}, {}, {}, "reports/records", "default"),
        (FILE, {}, {}, {}, "file", "captcha-qa.toml:2"),
        (FILE, {"captcha_records": "ini"}, {}, {}, "ini", "ini captcha_records"),
        (FILE, {"captcha_records": "ini"}, {"CAPTCHA_QA_RECORDS": "var"}, {}, "var", "CAPTCHA_QA_RECORDS"),
        (FILE, {}, {"CAPTCHA_QA_RECORDS": "var"}, {"captcha_records": "cli"}, "cli", "--captcha-records"),
    ],
)
def test_defaults_file_ini_variables_command_line_in_this_order(
    text: str,
    ini: dict[str, object],
    environ: dict[str, str],
    options: dict[str, object],
    records: str,
    source: str,
    load_text: Loader,
    tmp_path: Path,
) -> None:
    settings = load_text(text, ini=ini, environ=environ, options=options)
    assert settings.run.records == tmp_path / records
    assert settings.source("captcha_records") == source


def test_a_relative_folder_starts_where_it_was_written(tmp_path: Path) -> None:
    start, config = tmp_path / "start", tmp_path / "conf"
    start.mkdir()
    config.mkdir()
    (config / "c.toml").write_text(f'{FILE}dashboard = "page.html"\n')
    named = {"captcha_config": "conf/c.toml"}
    of_file = load(tmp_path, tmp_path, options=named, ini={}, environ={})
    assert of_file.run.records == config / "file"
    assert of_file.run.dashboard == config / "page.html"
    of_line = load(start, tmp_path, options={"captcha_records": "r", "captcha_dashboard": "d"}, ini={}, environ={})
    assert of_line.run.records == start / "r"
    assert of_line.run.dashboard == start / "d"
    of_ini = load(start, tmp_path, options={}, ini={"captcha_records": "r"}, environ={})
    assert of_ini.run.records == tmp_path / "r"


def test_dotenv_fills_in_what_the_process_does_not_say(small: str, load_text: Loader) -> None:
    before = dict(os.environ)
    dotenv = "CAPTCHAAI_API_KEY='from ${HOME} file'\nCAPTCHA_QA_BUDGET=7\nCAPTCHA_QA_ENV=staging\n"
    settings = load_text(small, dotenv=dotenv)
    key = settings.environment("staging").account.key
    assert key is not None
    assert key.text() == "from ${HOME} file"
    assert (settings.run.budget, settings.source("captcha_budget")) == (7, "CAPTCHA_QA_BUDGET")
    assert settings.run.env is None  # it decides whether the file is read at all
    assert dict(os.environ) == before


@pytest.mark.parametrize(("real", "value"), [("real", "real"), ("", None)])
def test_a_real_variable_wins_even_if_it_is_empty(real: str, value: str | None, small: str, load_text: Loader) -> None:
    settings = load_text(small, dotenv="CAPTCHAAI_API_KEY=file\n", environ={"CAPTCHAAI_API_KEY": real})
    key = settings.environment("staging").account.key
    assert key is not None
    assert settings.variables.get("CAPTCHAAI_API_KEY") == value
    if value is None:
        with pytest.raises(MissingSecret, match="the variable CAPTCHAAI_API_KEY is empty"):
            key.text()


def test_a_dotenv_in_another_encoding_is_refused(small: str, load_text: Loader, tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"A=\xe4\n")
    with pytest.raises(ConfigError, match=r"\.env is not UTF-8"):
        load_text(small)


def test_a_file_may_stand_in_for_a_variable(small: str, load_text: Loader, tmp_path: Path) -> None:
    text = small.replace('api_key_env = "CAPTCHAAI_API_KEY"', 'api_key_file = "key"')
    key = load_text(text).environment("staging").account.key
    assert key is not None
    assert not key.is_set
    with pytest.raises(MissingSecret, match=r"key is missing, unreadable or empty; accounts.main.api_key_file"):
        key.text()
    (tmp_path / "key").write_text("  abc\n")
    assert key.text() == "abc"


def test_variables_are_not_sent_to_another_process(small: str, load_text: Loader) -> None:
    with pytest.raises(TypeError, match="not sent to another process"):
        pickle.dumps(load_text(small, environ={"A": "b"}).variables)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"captcha_run_id": "../x"}, "--captcha-run-id: '../x' cannot name a run"),
        ({"captcha_store_env": "redis://h"}, "--captcha-store-env: must be the name of a variable"),
        (
            {"captcha_allow_production": ["https://shop.example"]},
            "--captcha-allow-production: 'https://shop.ex",
        ),
        ({"captcha_allow_production": ["shop.example/x"]}, "write the"),
        ({"captcha_budget": "none"}, "--captcha-budget: 'none' is not a whole number from 1"),
    ],
)
def test_an_option_that_cannot_work_is_refused_by_its_name(
    options: dict[str, object], sentence: str, small: str, load_text: Loader
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_text(small, options=options)
    assert sentence in caught.value.message


def test_production_hosts_of_the_command_line_are_kept(small: str, load_text: Loader) -> None:
    given = {"captcha_allow_production": ["shop.example", "www.shop.example"]}
    assert load_text(small, options=given).run.allow_production == ("shop.example", "www.shop.example")


def test_the_root_without_pytest_is_the_repository(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "a" / ".git").mkdir()
    assert project_root(below) == tmp_path / "a"
