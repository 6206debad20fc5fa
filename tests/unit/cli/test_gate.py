from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from errno import ENOSPC, EPIPE
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.cli.main import main
from pytest_captcha_qa.reporting.gate import running

SETTINGS = """\
accounts.main = { provider = "captchaai", api_key_env = "KEY" }
[env.staging]
kind = "staging"
origins = ["https://staging.shop.example"]
account = "main"
[forms.signup]
path = "/signup"
type = "turnstile"
success = { status = 303 }
[gate]
min_verify_rate = 0.99
min_coverage = 1
"""
FAILED: Mapping[str, Any] = {"verify_status": "fail", "outcome": "failed", "fault": "product"}
Gate = Callable[..., tuple[int, str, str]]


@pytest.fixture
def gate(tmp_path: Path, records: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Gate:
    """Run the command in a folder with a configuration; it returns code, output and what went to stderr."""
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "CAPTCHA_QA_ENV", "CAPTCHA_QA_BASELINE"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str, settings: str = SETTINGS) -> tuple[int, str, str]:
        Path("captcha-qa.toml").write_text(settings, "utf-8")
        code = main(["gate", *(arguments or ("records",))])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_the_newest_run_is_judged_or_a_release(records: Any, gate: Gate) -> None:
    records.run("old", [FAILED] * 9, release="1.2.0", ago=timedelta(days=1))
    records.run("r1", [{}] * 9)
    code, output, _ = gate()
    assert (code, output.splitlines()[0]) == (0, "gate: run r1 of release 1.3.0: 2 passed")
    code, output, _ = gate("records", "--release", "1.2.0")
    assert (code, output.splitlines()[0]) == (10, "gate: release 1.2.0 (1 run): 1 breached, 1 passed")
    assert gate("records", "--release", "1.2.0", "--mode", "report")[0] == 0


def test_the_forms_of_the_configuration_are_those_to_measure(records: Any, gate: Gate) -> None:
    records.run("r1", [{"slug": "login"}] * 9)
    code, output, _ = gate()
    assert (code, "coverage: 0 of 1 form measured (0 %), at least 100 % asked; not measured: signup" in output) == (
        10,
        True,
    )
    unknown = SETTINGS.replace("env.staging", "env.other")
    assert gate(settings=unknown)[0] == 0


def test_waivers_of_forms_and_of_rules_hold_here_too(records: Any, gate: Gate) -> None:
    records.run("r1", [FAILED] * 9)
    day = "2999-01-01"
    table = f'\n[[waivers]]\nform = "signup"\nuntil = {day}\nreason = "moving"\n'
    long = SETTINGS.replace('account = "main"', 'account = "main"\nwaivers_max_days = 999999')
    code, output, _ = gate(settings=long + table)
    assert (code, f"(waived until {day}: signup: moving)" in output) == (0, True)
    assert gate(settings=long + table.replace('form = "signup"', 'rule = "min_verify_rate"'))[0] == 0
    assert gate(settings=long + table.replace('form = "signup"', 'rule = "max_p90"'))[0] == 10


def test_several_environments_want_one_to_be_chosen(records: Any, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    records.run("r1", [{}])
    records.run("r2", [{"env": "qa"}], env="qa")
    code, _, errors = gate()
    assert (code, errors) == (4, "error: the records hold runs of 'qa', 'staging'; choose one with --env\n")
    assert gate("records", "--env", "staging")[0] == 0
    monkeypatch.setenv("CAPTCHA_QA_ENV", "staging")
    assert gate()[0] == 0
    assert gate("records", "--env", "nowhere")[0] == 4


@pytest.mark.parametrize(
    ("arguments", "settings", "piece"),
    [
        (("nowhere",), SETTINGS, "there is no record file or folder nowhere"),
        (("records",), SETTINGS, "the records hold no run of any environment"),
        (("records", "--mode", "enforced"), SETTINGS, "--mode: 'enforced' is not one of report, enforce; did you mean"),
        (("records",), SETTINGS.partition("[gate]")[0], "there is no table [gate] in captcha-qa.toml"),
        (("records",), SETTINGS + "max_p95 = 1\n", "gate.max_p95: there is no such key; did you mean 'max_p90'?"),
    ],
)
def test_wrong_usage_answers_4_in_a_sentence_and_as_json(
    records: Any, gate: Gate, arguments: tuple[str, ...], settings: str, piece: str
) -> None:
    code, output, errors = gate(*arguments, settings=settings)
    assert (code, output, piece in errors) == (4, "", True), errors
    code, output, errors = gate(*arguments, "--json", settings=settings)
    assert (code, errors, piece in json.loads(output)["problems"][0]) == (4, "", True)


def test_a_missing_extra_is_named(records: Any, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "find_spec", lambda name: None)
    code, _, errors = gate()
    assert (code, "pip install 'pytest-captcha-qa[gate]'" in errors) == (4, True)


def test_record_files_are_a_baseline_or_16(records: Any, gate: Gate, tmp_path: Path) -> None:
    records.run("r1", [{}] * 9)
    records.run("m1", [{}] * 9).rename(tmp_path / "main.jsonl")
    code, output, _ = gate("records", "--baseline", "main.jsonl")
    assert (code, "run r1 of release 1.3.0, against main.jsonl: " in output) == (0, True), output
    for named, piece in (
        ("gone.jsonl", "there is no baseline: there is no record file or folder"),
        ("1.0.0", "there is no record of the baseline 1.0.0 in environment 'staging' (there: 1.3.0)"),
    ):
        code, output, _ = gate("records", "--baseline", named)
        assert (code, piece in output) == (16, True), output


def test_what_cannot_be_written_is_an_error(
    records: Any, gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records.run("r1", [{}])
    assert "the Code Quality report cannot be written to" in gate("records", "--code-quality", str(tmp_path))[2]
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    code, _, errors = gate()
    assert (code, errors.startswith("error: GITHUB_STEP_SUMMARY names ")) == (4, True)


def test_an_environment_or_release_that_is_no_name_is_wrong_usage(records: Any, gate: Gate) -> None:
    records.run("r1", [{}])
    code, _, error = gate("records", "--env", "stagng")
    assert (code, error) == (4, "error: unknown environment 'stagng'; did you mean 'staging'?\n")
    code, _, error = gate("records", "--release", "")
    assert (code, error) == (4, "error: --release is empty; is the variable set that it comes from?\n")


def test_no_record_at_all_is_nothing_measured_where_the_environment_is_known(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gate("records")[0] == 4
    monkeypatch.setenv("CAPTCHA_QA_ENV", "staging")
    assert gate("records")[0] == 11


@pytest.mark.parametrize("release", ["v1/2", "records", "*", "x" * 400, "previous"])
def test_a_release_on_record_goes_before_files_of_its_name(records: Any, gate: Gate, release: str) -> None:
    Path("previous").mkdir(exist_ok=True)
    records.run("old", [{}], release=release, ago=timedelta(days=1))
    records.run("r1", [{}] * 3)
    code, output, _ = gate("records", "--baseline", release)
    assert (code, output.splitlines()[0].partition(": ")[2].partition(": ")[0]) == (
        0, f"run r1 of release 1.3.0, against {release}"
    )  # fmt: skip
    assert gate("records", "--baseline", "y" * 400)[0] == 16


class Broken(io.StringIO):
    """An output that nobody reads, or that has no room."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def write(self, text: str) -> int:
        raise OSError(self.number, "no room")

    def fileno(self) -> int:
        return self.number


@pytest.mark.parametrize(
    ("number", "code", "told"), [(EPIPE, 10, ""), (ENOSPC, 4, "error: the answer cannot be printed: no room\n")]
)
def test_what_nobody_reads_changes_no_verdict(
    records: Any, gate: Gate, monkeypatch: pytest.MonkeyPatch, number: int, code: int, told: str
) -> None:
    records.run("r1", [FAILED] * 9)
    replaced: list[int] = []
    monkeypatch.setattr("os.dup2", lambda _, end: replaced.append(end))
    monkeypatch.setattr("sys.stdout", Broken(number))
    assert gate()[::2] == (code, told)
    assert replaced == [number]


def test_names_from_records_are_no_commands_of_the_terminal(records: Any, gate: Gate) -> None:
    records.run("r1", [{}], env="evil\x1b[31m\n::error::x")
    _, _, error = gate("records", "--env", "nowhere")
    assert "\x1b" not in error
    assert all(line.startswith("error: ") for line in error.splitlines())
