from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.cli import extras
from pytest_captcha_qa.cli.main import main
from pytest_captcha_qa.model.record import AttemptLine, Footer, Header, timestamp
from pytest_captcha_qa.records.lines import encode

Said = tuple[int, str, str]
Compare = Callable[..., Said]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attempt: Callable[..., AttemptLine]) -> Path:
    """A folder with records of 1.0, of 1.1 which waits half as long again, of 1.2 with one run, and of others."""
    monkeypatch.chdir(tmp_path)
    days = iter(range(100))

    def run(file: str, release: str | None, wait: float, *, env: str = "staging", **changes: Any) -> None:
        day = next(days)
        ts, run_id = timestamp(1_790_000_000.0 + 86_400 * day), f"r{day}"
        about = {"ts": ts, "run_id": run_id, "env": env, "release": release}
        lines = [attempt(**about, wait=wait + 0.1 * number + 0.01 * day, **changes) for number in range(4)]
        footer = Footer(ts=ts, run_id=run_id, complete=True, attempts=4)
        path = tmp_path / file / f"{run_id}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(map(encode, (Header(tool="t", **about), *lines, footer))))

    for release, wait, number in (("1.0", 10.0, 8), ("1.1", 15.0, 8), ("1.2", 15.0, 1)):
        for _ in range(number):
            run("reports/records/staging", release, wait)
    for _ in range(8):
        run("old", "0.9", 5.0)
    run("other", "1.0", 1.0, env="qa", captcha="hcaptcha")
    run("other", "1.3", 1.0, env="qa", key_mode="standin")
    run("other", "1.4", 1.0, env="qa", outcome="indeterminate", verify_status="error", fault="provider")
    return tmp_path


@pytest.fixture
def compare(project: Path, capsys: pytest.CaptureFixture[str]) -> Compare:
    def compare(*arguments: str) -> Said:
        code = main(["compare", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return compare


def test_people_get_a_table_sentences_and_a_sum_without_colours_where_there_is_no_terminal(compare: Compare) -> None:
    code, out, err = compare("1.0", "1.1")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0].split() == ["change", "captcha", "metric", "1.0", "1.1", "change", "by", "attempts", "runs"]
    assert lines[1].split() == [
        "worse", "turnstile", "(captchaai,", "live)", "wait", "10.2", "s", "15.3", "s", "+50", "%",
        "32", "->", "32", "8", "->", "8",
    ]  # fmt: skip
    assert "wait for the token of turnstile (captchaai, live) is slower by 50 %: median 10.2 s" in out
    assert lines[-1] == "1.1 against 1.0 in staging: 1 worse, 2 same of 3 metrics"
    assert "\x1b" not in out


def test_what_is_worse_changes_the_exit_code_only_if_asked(compare: Compare) -> None:
    assert compare("1.0", "1.1", "reports/records", "--fail-on-worse")[0] == 10
    assert compare("1.1", "1.0", "--fail-on-worse")[0] == 0


def test_a_script_gets_one_object(compare: Compare) -> None:
    said = json.loads(compare("1.0", "1.1", "--json")[1])
    wait = next(change for change in said["changes"] if change["metric"] == "wait")
    assert said["counts"] == {"better": 0, "same": 2, "worse": 1, "not_enough_data": 0}
    assert (said["env"], said["baseline"], said["candidate"]) == ("staging", "1.0", "1.1")
    assert (wait["change"], wait["unit"], wait["side"], wait["form"]) == ("worse", "s", "provider", None)
    assert wait["effect"] == pytest.approx(0.5, abs=0.01)
    assert wait["adjusted_p_value"] <= 0.01
    assert (wait["baseline"]["n"], wait["baseline"]["runs"]) == (32, 8)
    assert (said["notes"], said["problems"]) == ([], [])


def test_previous_is_the_release_before(compare: Compare) -> None:
    assert json.loads(compare("previous", "1.1", "--json")[1])["baseline"] == "1.0"
    code, _, err = compare("previous", "1.0")
    assert (code, err) == (16, "error: no complete run of a release before 1.0 in environment 'staging'\n")


def test_records_stand_for_releases(compare: Compare) -> None:
    code, out, _ = compare("old", "reports/records")
    assert (code, out.splitlines()[-1]) == (0, "reports/records against old in staging: 1 worse, 2 same of 3 metrics")
    assert "1.1 against old in staging: 1 worse" in compare("old", "1.1")[1]
    assert "old/*.jsonl against 1.0 in staging: 1 better" in compare("1.0", "old/*.jsonl")[1]


def test_runs_of_both_sides_count_for_the_candidate_only(compare: Compare) -> None:
    code, out, _ = compare("reports/records", "reports/records/staging/r1*.jsonl", "--json")
    said = json.loads(out)
    sizes = {change["metric"]: (change["baseline"]["runs"], change["candidate"]["runs"]) for change in said["changes"]}
    assert (code, sizes["wait"]) == (0, (9, 8))
    assert "8 runs left out, which the other side has too" in said["notes"][0]


def test_on_day_one_a_sentence_says_how_much_there_is_and_what_would_do(compare: Compare) -> None:
    code, out, _ = compare("1.1", "1.2")
    assert (code, out) == (
        11,
        "1.2 against 1.1 in staging: not enough data for any of 3 metrics: at most 32 attempts in 8 runs of 1.1 and "
        "4 attempts in 1 run of 1.2; 5 runs of 1.2 could tell, there is 1\n",
    )
    said = json.loads(compare("1.1", "1.2", "--json")[1])
    assert {change["change"] for change in said["changes"]} == {"not_enough_data"}
    assert "not enough data to tell a change (median 15.3 s (32 attempts in 8 runs) -> median" in str(said["changes"])


def test_only_what_can_be_told_has_a_row(compare: Compare, project: Path, attempt: Callable[..., AttemptLine]) -> None:
    for release, run_id in (("1.0", "r0"), ("1.1", "r8")):
        file = project / f"reports/records/staging/{run_id}.jsonl"
        header, *lines, footer = file.read_bytes().splitlines(keepends=True)
        ts = json.loads(lines[0])["ts"]
        about = {"env": "staging", "captcha": "hcaptcha", "slug": "login", "wait": 9.0}
        other = encode(attempt(ts=ts, run_id=run_id, release=release, **about))
        file.write_bytes(b"".join([header, *lines, other, footer]))
    code, out, _ = compare("1.0", "1.1")
    assert (code, "hcaptcha" in out) == (0, False)
    assert "not enough data for 3 metrics, not listed: at most 1 attempt in 1 run of 1.0 and 1 attempt in 1 run" in out
    assert out.endswith("1.1 against 1.0 in staging: 1 worse, 2 same, 3 not enough data of 6 metrics\n")


def test_a_candidate_that_measured_nothing_is_not_enough(compare: Compare) -> None:
    code, out, _ = compare("1.3", "1.4", "other")
    assert code == 11
    assert "1.4: 4 attempts left out, ended by an outage or undetermined" in out
    assert out.endswith("1.4 against 1.3 in qa: nothing was measured that could be compared\n")


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["1.5", "1.1"], 16, "unknown release or file '1.5' in the records of environment 'staging', so there is no"),
        (["1.0", "1.3", "other"], 16, "nothing of 1.3 can be compared with 1.0: hcaptcha (captchaai, live): only"),
        (
            ["1.0", "1.l"],
            4,
            "unknown release or file '1.l' in the records of environment 'staging'; did you mean",
        ),
        (["1.0", "1.1", "nowhere"], 4, "nowhere"),
        (["odl/", "1.1"], 16, "the baseline odl/ cannot be read: there is no record file or folder odl"),
        (["1.0", "odl/"], 4, "there is no record file or folder odl"),
        (["1.0", "1.1", "reports", "old", "other"], 4, "hold runs of 'qa', 'staging'; choose one with --env"),
        (["1.0", "1.1", "--env", "stagin"], 4, "unknown environment 'stagin' in the records; did you mean 'staging'?"),
        (["1.0", "1.1", "--alpha", "0"], 4, "--alpha: '0' is not a number above 0 and at most 0.2"),
        (["1.0", "1.1", "--min-effect", "nan"], 4, "--min-effect: 'nan' is not a number above 0"),
        (["1.0"], 4, "B"),
    ],
)
def test_what_cannot_be_compared_is_an_error_with_its_code(
    compare: Compare, arguments: list[str], code: int, why: str
) -> None:
    found, _, err = compare(*arguments)
    assert (found, why in err) == (code, True), err
    assert "Traceback" not in err


def test_a_refusal_is_one_object_for_a_script_too(compare: Compare) -> None:
    code, out, _ = compare("1.5", "1.1", "--json")
    assert code == 16
    assert json.loads(out)["problems"][0].startswith("unknown release or file '1.5'")


def test_damaged_lines_are_told_and_not_fatal(compare: Compare, project: Path) -> None:
    file = project / "reports/records/staging/r0.jsonl"
    file.write_bytes(file.read_bytes() + b'{"$type": "attempt", "ts"\n')
    code, out, _ = compare("1.0", "1.1")
    assert code == 0
    assert "note: reports/records/staging/r0.jsonl:7: " in out
    assert "1.0: 1 run ended early or lost records; what they recorded counts" in out


def test_without_the_extra_it_says_what_to_install(compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "scipy" else name)
    code, _, err = compare("1.0", "1.1")
    assert (code, err) == (
        4, "error: captcha-qa compare needs scipy; install it with: pip install 'pytest-captcha-qa[gate]'\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "piece"),
    [
        (("1.0", "1.1", "--form", "signpu"), "unknown form 'signpu' in 1.0 and 1.1; did you mean 'signup'?"),
        (("", "1.1"), "A is empty; is the variable set that it comes from?"),
        (("1.0", "x" * 400), "unknown release or file 'xxx"),
    ],
)
def test_a_name_that_nobody_has_is_wrong_usage(compare: Compare, arguments: tuple[str, ...], piece: str) -> None:
    code, out, err = compare(*arguments)
    assert (code, out, piece in err) == (4, "", True), err


def test_a_release_goes_before_a_folder_of_its_name(compare: Compare, project: Path) -> None:
    (project / "old").rename(project / "1.0")
    assert "wait for the token of turnstile (captchaai, live) is slower by 50 %" in compare("1.0", "1.1")[1]
    assert "1.1 against ./1.0 in staging: 1 worse" in compare("./1.0", "1.1")[1]


def test_previous_is_never_a_folder_of_that_name(compare: Compare, project: Path) -> None:
    (project / "previous").mkdir()
    assert "1.1 against 1.0 in staging" in compare("previous", "1.1")[1]


@pytest.mark.parametrize(("sides", "code", "piece"), [(("old", "odl"), 4, "'odl'"), (("odl", "old"), 16, "'odl'")])
def test_a_folder_that_is_not_there_is_named_where_no_records_are(
    compare: Compare, project: Path, sides: tuple[str, str], code: int, piece: str
) -> None:
    (project / "reports").rename(project / "elsewhere")
    told = f"there is no record file or folder {piece}, and no folder reports/records that could hold such a release"
    assert compare(*sides)[::2] == (code, f"error: {told}\n")
    code, _, err = compare("old", "old")
    assert (code, err) == (16, "error: there is nothing to compare with: all runs of old are on the other side too\n")
