"""Options where a team sets them: their precedence, and what each does to a run."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

ATTEMPT = "def test_it(captcha_attempt): assert captcha_attempt('login')\n"
UNREACHABLE = """
[forms.unreachable]
path = "/turnstile"
type = "turnstile"
success = { status = 303 }
[accounts.second]
provider = "sandbox"
url_env = "PROVIDER_URL"
time_scale = 0.02
"""
RUN_TABLE = """
[run]
records = "from-file"
outage = "skip"
"""


def down() -> dict[str, str]:
    """Variables of a provider that nobody serves."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return {"PROVIDER_URL": f"http://127.0.0.1:{probe.getsockname()[1]}"}


PLACES = ("command line", "variable", "ini", "file")


@pytest.mark.parametrize("strongest", range(len(PLACES) + 1), ids=[*PLACES, "default"])
def test_the_command_line_goes_before_variable_ini_and_file(staging: Callable[..., Any], strongest: int) -> None:
    given = PLACES[strongest:]
    project = staging({"test_it.py": ATTEMPT}, settings=RUN_TABLE if "file" in given else "")
    if "ini" in given:
        project.write({"pytest.ini": "[pytest]\ncaptcha_records = from-ini\n"})
    ran = project.run(
        "--captcha-env=staging",
        *(["--captcha-records=from-option"] if "command line" in given else []),
        env={"CAPTCHA_QA_RECORDS": "from-variable"} if "variable" in given else {},
    )
    folders = ["from-option", "from-variable", "from-ini", "from-file", "reports/records"]
    assert ran.code == 0, ran.output
    assert [name for name in folders if (project.folder / name).exists()] == [folders[strongest]]
    assert (project.folder / folders[strongest]).parent.joinpath("verdict.json").exists()


def test_the_environment_may_stand_in_ini_and_variable(staging: Callable[..., Any]) -> None:
    project = staging({"test_it.py": ATTEMPT})
    project.write({"pytest.ini": "[pytest]\ncaptcha_env = nowhere\ncaptcha_required = true\n"})
    ran = project.run(env={"CAPTCHA_QA_ENV": "staging", "CAPTCHA_QA_RUN_ID": "v1", "CAPTCHA_QA_RELEASE": "9.9"})
    assert ran.code == 0, ran.output
    assert [path.name for path in ran.record_files] == ["v1.jsonl"]
    assert ran.verdict["release"] == "9.9"


def test_a_project_elsewhere_is_run_by_its_own_file(staging: Callable[..., Any], tmp_path: Path) -> None:
    project = staging({"test_it.py": ATTEMPT})
    ran = replace(project, folder=tmp_path).run("--captcha-env=staging", str(project.folder))
    assert ran.code == 0, ran.output
    assert (project.folder / "reports" / "verdict.json").exists()


def test_a_run_that_cannot_start_leaves_no_verdict_of_an_earlier_one(staging: Callable[..., Any]) -> None:
    native = '[tool.pytest]\ncaptcha_env = "staging"\ncaptcha_suite = {}\n'
    project = staging({"test_it.py": ATTEMPT, "pyproject.toml": native.format("false")})
    (project.folder / "pytest.ini").unlink()
    assert (ran := project.run()).verdict["exit"] == ran.code == 0, ran.output
    ran = project.run("--captcha-outage=never")
    assert (ran.code, ran.verdict) == (4, {}), ran.output
    ran = project.write({"pytest.ini": "[pytest]\ncaptcha_suite = perhaps\n"}).run("--captcha-env=staging")
    assert ran.code == 4, ran.output
    assert "ini captcha_suite: invalid truth value 'perhaps'" in ran.output


def test_a_run_id_names_records_and_is_never_used_up(staging: Callable[..., Any]) -> None:
    project = staging({"test_it.py": ATTEMPT})
    for _ in range(2):
        ran = project.run("--captcha-env=staging", "--captcha-run-id=nightly")
    assert [path.name for path in ran.record_files] == ["nightly-2.jsonl", "nightly.jsonl"]
    assert (ran.code, ran.verdict["captcha_tests"], ran.verdict["cost"]["submits"]) == (0, 1, 1), ran.output


def test_an_account_is_chosen_by_name(staging: Callable[..., Any]) -> None:
    project = staging({"test_it.py": ATTEMPT}, settings=UNREACHABLE)
    ran = project.run("--captcha-env=staging", "--captcha-account=second")
    assert [a["account"] for a in ran.attempts] == ["second"]
    wrong = project.run("--captcha-env=staging", "--captcha-account=secnd")
    assert wrong.code == 4
    assert "unknown account 'secnd' in captcha-qa.toml; did you mean 'second'?" in wrong.output


def test_the_budget_is_twice_the_selected_captcha_tests(staging: Callable[..., Any]) -> None:
    tests = """\
def test_ordinary(): pass
def test_three(captcha_attempt):
    for n in range(3): assert captcha_attempt("login")
"""
    ran = staging({"test_it.py": tests}).run("--captcha-env=staging")
    assert (ran.code, ran.verdict["exit"], ran.verdict["cost"]["submits"]) == (13, 13, 2), ran.output
    assert "the budget of 2 submits for this run is used up; raise it with --captcha-budget N" in ran.output


def test_plain_exit_codes_are_told_apart_in_the_verdict_only(staging: Callable[..., Any]) -> None:
    project = staging({"test_it.py": ATTEMPT})
    ran = project.run("--captcha-env=staging", "--captcha-exit-codes=pytest", env=down())
    assert (ran.code, ran.verdict["exit"]) == (1, 1), ran.output
    assert [code["code"] for code in ran.verdict["codes"]] == [12, 11]
    assert "exit 1 (extended 12)" in ran.output


@pytest.mark.parametrize(("outage", "counts"), [("skip", "1 skipped"), ("error", "1 failed")])
def test_an_outage_is_shown_as_asked_and_ends_12_either_way(
    staging: Callable[..., Any], outage: str, counts: str
) -> None:
    ran = staging({"test_it.py": ATTEMPT}).run(f"--captcha-outage={outage}", "--captcha-env=staging", "-rs", env=down())
    assert (ran.code, ran.counts) == (12, counts), ran.output
    assert ran.verdict["forms"]["login"]["fault"] == "provider"


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["plain", "xdist"])
@pytest.mark.parametrize(
    ("where", "code"), [("a file in its place", 4), ("no such place", 4), ("the store", 4)], ids=lambda v: str(v)
)
def test_where_nothing_can_be_kept_nothing_is_sent(
    staging: Callable[..., Any],
    requests_at_site: Callable[[], Any],
    where: str,
    code: int,
    workers: tuple[str, ...],
    tmp_path: Path,
) -> None:
    project = staging({"test_it.py": ATTEMPT}).write({"blocked": "a file"})
    blocked = project.folder / "blocked"
    options, env = {
        "a file in its place": ([f"--captcha-records={blocked}"], {}),
        "no such place": (["--captcha-records=/proc/self/none/records"], {}),
        "the store": ([], {"XDG_CACHE_HOME": str(blocked)}),
    }[where]
    before = requests_at_site()
    ran = project.run("--captcha-env=staging", *options, *workers, env=env)

    assert requests_at_site() == before
    assert ran.code == code, ran.output
    assert "Traceback" not in ran.output
    assert "INTERNALERROR" not in ran.output
    said = "".join(ran.output.split())
    assert (str(blocked) if where != "no such place" else "/proc/self/none/records") in said
