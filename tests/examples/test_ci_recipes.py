"""The recipes in deploy/ci: valid for the CI they are for, with commands there are, acting on every exit code."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from pytest_captcha_qa.cli.main import app
from pytest_captcha_qa.config.options import OPTIONS
from pytest_captcha_qa.reporting.codes import MEANINGS

RECIPES = Path(__file__).parents[2] / "deploy" / "ci"
DOCUMENTATION = Path(__file__).parents[2] / "docs" / "ci.md"
GITHUB = yaml.safe_load((RECIPES / "github-actions.yml").read_text())
GITLAB = yaml.safe_load((RECIPES / "gitlab-ci.yml").read_text())
JENKINS = (RECIPES / "Jenkinsfile").read_text()

JOBS = GITHUB["jobs"]
GITLAB_JOBS = {name: job for name, job in GITLAB.items() if name.startswith("captcha-")}
OURS = {row.flag for row in OPTIONS}
FOREIGN = {
    "-ra",
    "--junitxml",
    "--pyargs",
    "pytest_captcha_qa.suites",
    "--splits",
    "--group",
}  # pytest's own, and pytest-split's
PROGRAM = re.compile(r"\s*(?:\.venv/bin/)?(pytest|captcha-qa) ")
YELLOW = (11, 12)


# What the CI itself says.


@pytest.mark.parametrize(
    ("recipe", "schema"), [("github-actions.yml", "github-workflows"), ("gitlab-ci.yml", "gitlab-ci")]
)
def test_a_recipe_is_what_the_published_schema_wants(recipe: str, schema: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", RECIPES / recipe]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_workflow_gives_nothing_away() -> None:
    zizmor = Path(sys.executable).with_name("zizmor")
    command = [zizmor, "--offline", "--format=json", "--persona=pedantic", RECIPES / "github-actions.yml"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    found = {finding["ident"] for finding in json.loads(done.stdout)}

    assert found <= {"unpinned-uses"}, done.stdout  # the recipe says why


@pytest.mark.parametrize("opening", ["{}", "()", "[]"])
def test_what_is_opened_in_the_jenkinsfile_is_closed(opening: str) -> None:
    code = re.sub(r"//[^\n]*|'''.*?'''|'[^'\n]*'|\"[^\"\n]*\"", "", JENKINS, flags=re.DOTALL)

    assert code.count(opening[0]) == code.count(opening[1]) > 0


# The commands.


def shell_parts() -> Iterator[tuple[str, str]]:
    """Yield (recipe, text) of everything that a shell runs."""
    yield from (("GitHub", step["run"]) for job in JOBS.values() for step in job["steps"] if "run" in step)
    yield from (("GitLab", line) for job in GITLAB_JOBS.values() for line in job["script"])
    for part in re.finditer(r"(?:sh|script:)\s+(?:'''(.*?)'''|'([^'\n]*)'|\"([^\"\n]*)\")", JENKINS, re.DOTALL):
        yield "Jenkins", next(filter(None, part.groups())).replace("\\\\", "\\")


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yield (recipe, words) of each command line of ours."""
    for recipe, text in SHELL:
        for line in text.replace("\\\n", " ").splitlines():
            found = PROGRAM.match(line)
            if found:
                yield recipe, shlex.split(line[found.start(1) :].removesuffix("|| code=$?"))


SHELL = list(shell_parts())
COMMANDS = list(commands())


def test_each_recipe_tests_the_sandbox_and_staging_and_asks_the_gate() -> None:
    for name in ("GitHub", "GitLab", "Jenkins"):
        said = [" ".join(words[:3]) for recipe, words in COMMANDS if recipe == name]
        starts = (
            "pytest --pyargs pytest_captcha_qa.suites",
            "pytest --captcha-env=staging",
            "captcha-qa report",
            "captcha-qa gate",
        )
        assert {start for start in starts if any(one.startswith(start) for one in said)} == set(starts), said


@pytest.mark.parametrize(("recipe", "words"), COMMANDS, ids=[f"{n}: {' '.join(w[:3])}" for n, w in COMMANDS])
def test_every_command_and_option_exists(recipe: str, words: list[str]) -> None:
    if words[0] == "pytest":
        flags = {word.partition("=")[0] for word in words[1:]}
        assert flags <= OURS | FOREIGN, flags - OURS - FOREIGN
        return
    command = typer.main.get_command(app).commands[words[1]]
    command.make_context(words[1], words[2:])  # raises for an option or argument there is not


def test_only_the_gate_s_job_needs_what_a_gate_needs() -> None:
    testing = [words for _, words in COMMANDS if words[0] == "pytest"]

    assert all("--captcha-gate=off" in words for words in testing)
    assert len(testing) == 6


# What comes of each exit code.


@pytest.fixture
def run_step(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a step of the GitHub workflow as its runner does; the programs in it answer with these codes, in turn."""

    def run(job: str, step: str, *codes: int) -> subprocess.CompletedProcess[str]:
        (script,) = (one["run"] for one in JOBS[job]["steps"] if one.get("name") == step)
        (tmp_path / "codes").write_text("".join(f"{code}\n" for code in codes))
        for name in ("pytest", "captcha-qa", "sleep"):
            answers = "exit 0" if name == "sleep" else 'read -r code < codes; sed -i 1d codes; exit "$code"'
            program = tmp_path / name
            program.write_text(f'#!/bin/sh\necho "ran {name} $*"\ncd "{tmp_path}"\n{answers}\n')
            program.chmod(0o755)
        env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "CAPTCHA_QA_SHARD": "1", "PAUSE": "300"}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=30)

    return run


@pytest.mark.parametrize("code", [code for code in MEANINGS if code != 12])
def test_a_part_of_the_workflow_acts_on_each_code(run_step: Callable[..., Any], code: int) -> None:
    done = run_step("staging", "Test", code)

    assert done.returncode == (0 if code in YELLOW else code), done.stdout
    assert ("::warning" in done.stdout) == (code in YELLOW)
    assert done.stdout.count("ran pytest") == 1


@pytest.mark.parametrize(("second", "answer"), [(0, 0), (12, 0), (1, 1)])
def test_no_verdict_is_tried_once_more_a_little_later(run_step: Callable[..., Any], second: int, answer: int) -> None:
    done = run_step("staging", "Test", 12, second)

    assert done.returncode == answer
    assert (done.stdout.count("ran pytest"), done.stdout.count("ran sleep 300")) == (2, 1)
    assert ("::warning title=No verdict" in done.stdout) == (second == 12)


@pytest.mark.parametrize("code", MEANINGS)
def test_the_gate_of_the_workflow_acts_on_each_code(run_step: Callable[..., Any], code: int) -> None:
    done = run_step("gate", "Gate", code)

    assert done.returncode == (0 if code in YELLOW else code)
    assert ("::warning" in done.stdout) == (code in YELLOW)


def test_gitlab_tries_again_before_it_allows_a_failure() -> None:
    staging, gate = GITLAB_JOBS["captcha-staging"], GITLAB_JOBS["captcha-gate"]

    assert staging["retry"] == {"max": 1, "exit_codes": [12]}
    assert staging["allow_failure"]["exit_codes"] == gate["allow_failure"]["exit_codes"] == list(YELLOW)


def test_jenkins_names_each_of_our_codes() -> None:
    cases = {int(code): answer for code, answer in re.findall(r"case (\d+): (\w+)", JENKINS)}

    assert set(cases) == {0, *range(10, 17)}
    assert [code for code, answer in cases.items() if answer == "unstable"] == list(YELLOW)
    assert "default: error(" in JENKINS


def test_the_documentation_says_what_to_do_at_each_code() -> None:
    rows = re.findall(r"^\| (\d+(?:, \d+)*) \|", DOCUMENTATION.read_text(), re.MULTILINE)

    assert {int(code) for row in rows for code in row.split(", ")} == set(MEANINGS)


# What may not happen.


def test_a_pull_request_runs_on_the_sandbox_and_sees_no_secret() -> None:
    triggers = GITHUB[True]  # YAML 1.1 takes `on` for a truth value
    steps = JOBS["sandbox"]["steps"]

    assert "pull_request_target" not in triggers
    assert JOBS["sandbox"]["if"] == "github.event_name == 'pull_request'"
    assert all("pull_request" in job["if"] for job in JOBS.values())
    assert "secrets." not in json.dumps(JOBS["sandbox"])
    assert "environment" not in JOBS["sandbox"]
    assert [step["run"] for step in steps if "--captcha-env=demo" in step.get("run", "")]
    assert [name for name, job in JOBS.items() if "secrets." in json.dumps(job)] == ["staging"]


def test_a_merge_request_runs_on_the_sandbox() -> None:
    event = '$CI_PIPELINE_SOURCE == "merge_request_event"'

    assert GITLAB_JOBS["captcha-sandbox"]["rules"] == [{"if": event}]
    others = {name: job for name, job in GITLAB_JOBS.items() if name != "captcha-sandbox"}
    assert all(job["rules"][0] == {"if": event, "when": "never"} for job in others.values())


def test_jobs_have_the_least_rights_and_an_end() -> None:
    assert GITHUB["permissions"] == {}
    rights = {name: job["permissions"] for name, job in JOBS.items()}
    assert rights.pop("gate") == {"contents": "read", "security-events": "write"}
    assert all(right == {"contents": "read"} for right in rights.values())
    assert all(job["timeout-minutes"] <= 60 for job in JOBS.values())
    assert all("timeout" in {**GITLAB[".captcha-qa"], **job} for job in GITLAB_JOBS.values())
    assert "timeout(time:" in JENKINS
    assert not [step for job in JOBS.values() for step in job["steps"] if "${{" in step.get("run", "")]


def test_every_shell_part_is_one() -> None:
    for recipe, part in SHELL:
        done = subprocess.run(["sh", "-n"], input=part, capture_output=True, text=True, timeout=10)
        assert done.returncode == 0, recipe + part + done.stderr
    assert len(SHELL) > 15
