"""The command line, as its users and their scripts see it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa import __version__
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.state.redis import RedisStore
from pytest_captcha_qa.state.redis_link import RedisLink

FIXTURES = Path(__file__).parents[2] / "fixtures" / "environments"
Answer = subprocess.CompletedProcess[str]


def captcha_qa(*arguments: str, cwd: Path, **environ: str) -> Answer:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CAPTCHA", "CAPSKIP"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest_captcha_qa.cli.main", *arguments],
        cwd=cwd,
        env={**clean, "PYTHONPATH": str(Path(__file__).parents[2]), **environ},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """Return a folder of a team with the small configuration."""
    shutil.copy(FIXTURES / "small.toml", tmp_path / "captcha-qa.toml")
    return tmp_path


def test_a_sound_configuration_is_shown_with_sources_and_answers_0(team: Path) -> None:
    answer = captcha_qa("check", "--env", "staging", cwd=team, CAPTCHAAI_API_KEY="hunter2hunter2")
    assert (answer.returncode, answer.stderr) == (0, "")
    lines = answer.stdout.splitlines()
    assert lines[0] == "Configuration: captcha-qa.toml"
    (key,) = (line.split() for line in lines if "api_key_env" in line)
    assert key == ["accounts.main.api_key_env", "CAPTCHAAI_API_KEY", "(set)", "captcha-qa.toml:5"]
    assert "      to captchaai     type recaptcha_v2" in lines
    assert "\x1b" not in answer.stdout
    assert "hunter2" not in answer.stdout


def test_a_missing_variable_is_shown_and_answers_4(team: Path) -> None:
    answer = captcha_qa("check", cwd=team)
    assert answer.returncode == 4
    assert "CAPTCHAAI_API_KEY (missing)" in answer.stdout
    assert answer.stderr.startswith("error: the variable CAPTCHAAI_API_KEY is not set")
    assert len(answer.stderr.splitlines()) == 1


def test_the_answer_as_json_can_be_read_by_a_script(team: Path) -> None:
    answer = captcha_qa("check", "--form", "signup", "--json", cwd=team)
    said = json.loads(answer.stdout)
    assert answer.returncode == 4
    assert said["file"] == str(team / "captcha-qa.toml")
    (environment,) = said["environments"]
    assert environment["name"] == "staging"
    assert environment["leaves"][0]["page"] == "https://staging.shop.example/signup"
    assert {"key": "env.staging.kind", "value": "staging", "source": "captcha-qa.toml:8"} in environment["rows"]
    assert {
        "key": "accounts.main.api_key_env",
        "value": {"variable": "CAPTCHAAI_API_KEY", "set": False},
        "source": "captcha-qa.toml:5",
    } in environment["rows"]
    assert {"key": "outage", "value": "error", "source": "default"} in said["run"]
    assert said["problems"] == environment["problems"]
    assert "CAPTCHAAI_API_KEY" in said["problems"][0]


def test_extensions_are_listed_with_what_they_offer_and_where_they_come_from(team: Path) -> None:
    (team / "qa").mkdir()
    (team / "qa" / "fields.py").write_text("def record_fields(line): ...\ndef provider(name, settings): ...\n")
    text = (team / "captcha-qa.toml").read_text().replace('"captchaai"', '"inhouse"')
    (team / "captcha-qa.toml").write_text(f'extensions = ["qa.fields", "qa.lost"]\n{text}')
    answer = captcha_qa("check", cwd=team, CAPTCHAAI_API_KEY="hunter2hunter2")
    assert answer.returncode == 4
    rows = [" ".join(line.split()) for line in answer.stdout.splitlines() if line.startswith("  extensions")]
    assert rows == [
        "extensions qa.fields (record_fields, provider) qa/fields.py, named in captcha-qa.toml:1",
        "extensions qa.lost (cannot be used) captcha-qa.toml:1",
    ]
    assert "the provider 'inhouse'" in answer.stdout
    [said] = answer.stderr.splitlines()
    assert said.startswith(
        "error: extensions: qa.lost cannot be imported: there is no module qa.lost; it is looked for"
    )


def test_all_problems_of_a_file_are_printed_one_a_line(team: Path) -> None:
    text = (team / "captcha-qa.toml").read_text()
    (team / "captcha-qa.toml").write_text(text.replace('"captchaai"', '"x"').replace('"/signup"', '"x"'))
    plain = captcha_qa("check", cwd=team)
    assert plain.returncode == 4
    assert plain.stdout == ""
    assert [line.split(": ")[1:3] for line in plain.stderr.splitlines()] == [
        ["captcha-qa.toml:4", "accounts.main.provider"],
        ["captcha-qa.toml:13", "forms.signup.path"],
    ]
    as_json = captcha_qa("check", "--json", cwd=team)
    assert as_json.returncode == 4
    assert len(json.loads(as_json.stdout)["problems"]) == 2


WAIVER = """
[[waivers]]
form = "signup"
probe = "{probe}"
until = {until}
reason = "known"
"""


def test_a_waiver_that_cannot_be_is_told_as_a_run_tells_it(team: Path, run_child: Callable[..., Any]) -> None:
    file, until = team / "captcha-qa.toml", date.today() + timedelta(days=3)
    sound = file.read_text()
    file.write_text(sound + WAIVER.format(probe="M93", until=until) + WAIVER.format(probe="M04", until=until))
    (team / "test_one.py").write_text("def test_one(captcha_attempt):\n    captcha_attempt('signup')\n")
    shown = captcha_qa("check", "--env", "staging", cwd=team, CAPTCHAAI_API_KEY="hunter2hunter2")
    ran = run_child(team, "--captcha-env=staging", env={"CAPTCHAAI_API_KEY": "hunter2hunter2"})
    assert (shown.returncode, ran.code) == (4, 4)
    told = [line.removeprefix("error: ") for line in shown.stderr.splitlines()]
    assert told == [
        "waivers: unknown probe 'M93' in the waiver of form 'signup'; did you mean 'M39'?",
        "waivers: M04 (form 'signup') is critical; a critical probe is never waived",
    ]
    assert all(sentence in ran.output for sentence in told)
    file.write_text(sound + WAIVER.format(probe="M12", until=until).replace('"signup"', '"sigup"'))
    shown = captcha_qa("check", cwd=team)
    assert shown.returncode == 4
    assert "waivers.0.form: 'sigup' is no form; did you mean 'signup'?" in shown.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["chec"],
        ["check", "--nonsense"],
        ["check", "--env"],
        ["check", "extra"],
        ["check", "--env", "stagin"],
        ["check", "--form", "sign"],
        ["check", "--config", "absent.toml"],
        ["sandbox", "--port", "many"],
        [],
    ],
    ids=" ".join,
)
def test_wrong_usage_answers_4_without_a_traceback(arguments: list[str], team: Path) -> None:
    answer = captcha_qa(*arguments, cwd=team)
    assert answer.returncode == 4
    assert "Traceback" not in answer.stderr
    assert answer.stdout + answer.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["check", "--config", "absent.toml"], "error: --config names absent.toml, which does not exist"),
        (["sandbox", "--port", "many"], "error: --port: 'many' is not a whole number from 0 to 65535"),
        (["sandbox", "--time-scale", "-1"], "error: --time-scale: '-1' is not a number from 0, such as 0.5"),
        (["sandbox", "--seed", "x"], "error: --seed: 'x' is not a whole number from 0"),
    ],
    ids=" ".join,
)
def test_a_wrong_value_is_one_sentence(arguments: list[str], sentence: str, team: Path) -> None:
    assert captcha_qa(*arguments, cwd=team).stderr.splitlines() == [sentence]


def test_the_environment_stands_in_its_heading_only(team: Path) -> None:
    lines = captcha_qa("check", "--env", "staging", cwd=team).stdout.splitlines()
    assert "Environment staging" in lines
    assert not any(line.split()[:1] == ["env"] for line in lines)


def test_help_and_version_answer_0(team: Path) -> None:
    version = captcha_qa("--version", cwd=team)
    assert (version.returncode, version.stdout.strip()) == (0, f"captcha-qa {__version__}")
    assert captcha_qa("--help", cwd=team).returncode == 0
    assert captcha_qa("check", "--help", cwd=team).returncode == 0


def test_the_demo_is_shown_without_any_file(tmp_path: Path) -> None:
    answer = captcha_qa("check", cwd=tmp_path)
    assert answer.returncode == 0
    assert "Environment demo" in answer.stdout


def test_a_file_above_the_repository_is_not_read(team: Path) -> None:
    repository = team / "repository"
    (repository / ".git").mkdir(parents=True)
    answer = captcha_qa("check", cwd=repository)
    assert "Configuration: no configuration file" in answer.stdout


def test_the_sandbox_without_its_extra_is_one_sentence(team: Path) -> None:
    blocked = team / "blocked"
    blocked.mkdir()
    (blocked / "uvicorn.py").write_text("raise ModuleNotFoundError(name='uvicorn')\n")
    root = str(Path(__file__).parents[2])
    answer = captcha_qa("sandbox", cwd=team, PYTHONPATH=os.pathsep.join([str(blocked), root]))
    assert answer.returncode == 4
    assert answer.stderr.splitlines() == [
        "error: the sandbox needs its extra: pip install 'pytest-captcha-qa[sandbox]'"
    ]


def test_the_sandbox_prints_its_addresses_and_ends_with_its_input(team: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest_captcha_qa.cli.main", "sandbox", "--json", "--time-scale", "0"],
        cwd=team,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    addresses = json.loads(process.stdout.readline())
    assert {"provider", "vendor", "site", "audit"} <= set(addresses)
    process.communicate(timeout=30)
    assert process.returncode == 0


def test_the_keys_in_a_shared_store_are_listed_without_their_tokens(team: Path, redis_server: Any) -> None:
    redis_server.empty()
    store = RedisStore(RedisLink(redis_server.address))
    times = KeyTimes(lease=30, renew=10, http=20, solve=300, redelivery=90, keep=110)
    lease = store.claim("5e" * 32, Fingerprint("form"), "owner", times=times).lease
    store.intend(lease)
    store.submitted(lease, "t-1")
    store.solved(lease, Solution({"token": "03AGdBq24PPsc"}), age_bound=0)
    store.close()
    file = team / "captcha-qa.toml"
    file.write_text(file.read_text().replace("[env.staging]", '[env.staging]\nstore_env = "STORE"'))
    answer = captcha_qa("state", "--env", "staging", cwd=team, STORE=redis_server.url)
    assert (answer.returncode, answer.stderr) == (0, "")
    store_line, counts, key = answer.stdout.splitlines()
    assert (store_line, counts) == (f"Store: unix://{redis_server.socket}", "1 ready")
    assert key.startswith("  5e5e5e5e5e5e  ready      generation 1  task t-1 of ")
    assert "03AGdBq24" not in answer.stdout
    as_json = json.loads(captcha_qa("state", "--json", cwd=team, XDG_CACHE_HOME=str(team)).stdout)
    assert as_json["keys"] == []
