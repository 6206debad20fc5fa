from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.gate import GateMode, GateRules
from pytest_captcha_qa.plugin import gate

RULES = GateRules()
BEGAN = datetime(2026, 11, 29, tzinfo=UTC)


def run_of(
    folder: Path, *, mode: GateMode | None = GateMode.ENFORCE, rules: GateRules | None = RULES, **known: Any
) -> Any:
    options = {"lf": known.get("lf", False)}
    config = SimpleNamespace(
        args=known.get("args", ["tests"]),
        getoption=lambda name, default=None: options.get(name, default),
        invocation_params=SimpleNamespace(dir=folder),
    )
    return SimpleNamespace(
        config=config,
        decides=known.get("decides", True),
        identity=SimpleNamespace(run_id="r1", shard=known.get("shard")),
        environment=SimpleNamespace(name="staging", forms={}, waivers=()),
        settings=SimpleNamespace(
            gate=rules,
            rule_waivers=(),
            chosen=known.get("chosen", {}),
            source=lambda dest: f"--{dest}",
            catalog=SimpleNamespace(document=SimpleNamespace(label="captcha-qa.toml")),
            run=SimpleNamespace(gate=mode, baseline=None, dashboard=None, records=folder),
        ),
    )


def answer(run: Any, deselected: int = 0) -> Any:
    return gate.answer(run, [], since=BEGAN, deselected=deselected)


@pytest.mark.parametrize(
    ("mode", "rules", "expected"),
    [
        (None, None, GateMode.OFF),
        (None, GateRules(), GateMode.REPORT),
        (GateMode.OFF, GateRules(), GateMode.OFF),
        (GateMode.ENFORCE, GateRules(), GateMode.ENFORCE),
    ],
)
def test_the_gate_reports_where_there_are_rules_unless_somebody_says_otherwise(
    tmp_path: Path, mode: GateMode | None, rules: GateRules | None, expected: GateMode
) -> None:
    assert gate.mode_of(run_of(tmp_path, mode=mode, rules=rules)) is expected


@pytest.mark.parametrize(
    ("known", "deselected", "why"),
    [
        ({}, 0, None),
        ({}, 2, "2 captcha tests deselected"),
        ({"lf": True}, 0, "--lf runs only what failed"),
        ({"args": ["tests/test_it.py::test_a"]}, 0, "only some tests were named"),
        ({"shard": "3"}, 1, "this is shard 3; judge all of them with `captcha-qa gate`"),
    ],
)
def test_a_run_that_says_too_little_about_the_whole_only_reports(
    tmp_path: Path, known: dict[str, Any], deselected: int, why: str | None
) -> None:
    found = answer(run_of(tmp_path, **known), deselected)
    assert (found.held_back, found.mode) == (why, GateMode.REPORT if why else GateMode.ENFORCE)


def test_a_run_that_recorded_nothing_has_too_little_data(tmp_path: Path) -> None:
    found = answer(run_of(tmp_path))
    assert (found.exit, found.result.rules[0].sentence) == (
        11, "the records hold nothing of run r1 in environment 'staging'",
    )  # fmt: skip


def test_a_history_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "staging").mkdir()
    (tmp_path / "staging" / "r1.jsonl").touch()

    def refuse(*_: object, **__: object) -> None:
        raise ConfigError("the record file cannot be read")

    monkeypatch.setattr(gate, "run_gate", refuse)
    found = answer(run_of(tmp_path))
    assert (found.result, found.fault, found.exit) == (None, "the record file cannot be read", 4)


def test_off_or_without_rules_nothing_is_judged(tmp_path: Path) -> None:
    assert answer(run_of(tmp_path, mode=GateMode.OFF)) is None
    assert answer(run_of(tmp_path, mode=None, rules=None)) is None


def test_what_cannot_work_is_said_before_the_first_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"captcha_gate": "enforce"}
    with pytest.raises(ConfigError, match=r"--captcha_gate: there is no table \[gate\] in captcha-qa.toml"):
        gate.check(run_of(tmp_path, rules=None, chosen=asked))
    gate.check(run_of(tmp_path, rules=None, mode=None))
    monkeypatch.setattr(gate, "missing_extra", lambda: "the gate needs the extra `gate`")
    with pytest.raises(ConfigError, match=r"\[gate\]: the gate needs the extra `gate`, or switch it off with"):
        gate.check(run_of(tmp_path, mode=None))
    gate.check(run_of(tmp_path, mode=GateMode.OFF))
    gate.check(run_of(tmp_path, decides=False))
