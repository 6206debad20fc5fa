"""The exact reader of records and the dataset tell the same facts, whatever was done to the files."""

import json
from collections.abc import Iterable, Sequence
from math import inf, nan
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from history.lines import IDS, TIMES, attempt, event, footer, header, packed, started
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.records.reading import read
from pytest_captcha_qa.records.runs import Run
from pytest_captcha_qa.reporting.dataset import dataset as module
from pytest_captcha_qa.reporting.dataset import open_dataset, staging

texts = st.sampled_from(
    [
        "signup",
        "a b",
        "",
        'quo"te',
        "back\\slash",
        "тест",
        "x" * 600,
        "ü" * 501,
        "\x00",
        "\ud800",
        "\u2028",
        "<b>",
        "\t",
    ]
)
maybe_texts = st.none() | texts
seconds = st.none() | st.sampled_from([0, 1, 0.5, 21.4, 21.44449, 21.4445, 2.6755, 1e-7, 1e30, -1.0, 2**70, nan, inf])
stages = st.dictionaries(st.sampled_from(["blocked", "page", "submit", "verify", "other"]), seconds.filter(bool))
releases = st.sampled_from([None, "", "1.3.0", "1.4.0"])


def spoilt(line: dict[str, Any], end: bytes) -> bytes:
    """A line whose end says something once more, or what is no JSON."""
    return json.dumps(line).encode()[:-1] + end


def of_one_env(line: dict[str, Any]) -> bool:
    """Whether it does not name another environment: the dataset tells runs of one id apart by it."""
    return line["env"] == "staging" or not isinstance(line["env"], str)


# What other programs, people and full disks have put in the place of what belongs there.
wrong = st.sampled_from([None, True, 5, -1, "5", "pass", 1.5, [], {}, {"code": 1}, 2**70, "é" * 40])
fields_of_attempts = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(IDS),
        "ts": st.sampled_from([*TIMES, "yesterday", "2026-11-29T11:18:01Z"]),
        "slug": texts,
        "wait": seconds,
        "release": releases,
        "project": texts,
        "attempt": st.sampled_from([0, 2, 2**62]),
        "seconds": stages,
        "nodeid": maybe_texts,
        "worker": maybe_texts,
        "error": st.none() | st.fixed_dictionaries({"code": texts}, optional={"message": texts, "more": texts}),
        "fault": st.sampled_from([None, "product", "provider"]),
        "outcome": st.sampled_from(["ok", "failed", "lost"]),
        "price": st.none() | st.sampled_from([0.5, 1, 0.00299]),
        "extra": st.dictionaries(st.sampled_from(["a", "build", "1x"]), st.sampled_from([None, 1, 1.5, "x", [1]])),
        "mood": texts,
    },
)
lines = st.one_of(
    st.builds(lambda f: attempt(**f), fields_of_attempts),
    st.builds(
        lambda f: started(**{k: v for k, v in f.items() if k in {"id", "ts", "slug", "nodeid"}}), fields_of_attempts
    ),
    st.builds(lambda key, value: attempt(**{key: value}), st.sampled_from(list(attempt())), wrong).filter(of_one_env),
    st.builds(lambda key, value: started(**{key: value}), st.sampled_from(list(started())), wrong).filter(of_one_env),
    st.builds(lambda to: event(name="release_changed", data={"from": "1.3.0", "to": to}), releases | st.just(5)),
    st.builds(lambda key, value: event(**{key: value}), st.sampled_from(list(event())), wrong),
    st.builds(lambda run_id: header(run_id=run_id), st.sampled_from(["r1", "r2"])),
    st.builds(lambda schema: header(schema=schema), st.sampled_from([1, 7, 0, "1"])),
    st.just({"$type": "weather", "sun": True}),
)
spaced = st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : "), (",", ": ")])


def other_programs(
    line: dict[str, Any], how: tuple[str, str], shuffled: Random, dropped: str, ascii_only: bool
) -> bytes:
    """A line with its keys in any order, a field missing, spaces."""
    keys = [key for key in line if key != dropped]
    shuffled.shuffle(keys)
    return json.dumps({key: line[key] for key in keys}, ensure_ascii=ascii_only, separators=how).encode(
        "utf-8", "replace"
    )


dropped = st.just("") | st.sampled_from([*attempt(), *started()])
raw_lines = st.one_of(
    st.builds(
        lambda line, how: json.dumps(line, ensure_ascii=False, separators=how).encode("utf-8", "replace"), lines, spaced
    ),
    st.builds(other_programs, lines, spaced, st.randoms(use_true_random=False), dropped, st.booleans()),
    st.builds(spoilt, lines, st.sampled_from([b",}", b', "wait": 1}', b', "id": "x"}', b', "mood": nan}', b"]", b""])),
    st.builds(lambda line: json.dumps(line, ensure_ascii=True, separators=(",", ":")).encode(), lines),
    st.sampled_from(
        [b"", b"   ", b"null", b"[1]", b"{", b"\xff\xfe", b'{"$type":"attempt"}', b"\x01", b"{}\r", b"\r", b"\x00"]
    ),
)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """One record file, perhaps with a footer, perhaps cut or overwritten somewhere."""
    begun = [json.dumps(header(release=draw(releases)), separators=(",", ":")).encode()] * draw(st.integers(0, 1))
    written = [*begun, *draw(st.lists(raw_lines, max_size=7))]
    if draw(st.booleans()):
        counted = sum(line.startswith(b'{"$type":"attempt"') for line in written)
        written.append(json.dumps(footer(attempts=counted), separators=(",", ":")).encode())
    content = b"\n".join(written) + b"\n"
    if draw(st.booleans()) and draw(st.booleans()):
        at = draw(st.integers(0, len(content)))
        content = content[:at] + draw(st.sampled_from([b"", b"\n", b"\r", b"#", b'"', content[at + 9 :]]))
    return content


@given(st.lists(files(), min_size=1, max_size=3))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@example([b""])
@example([json.dumps(attempt()).encode() + b"\n\x01"])
@example(
    [
        b'{"wait": 1, '
        + json.dumps(attempt()).encode()[1:-1]
        + b', "wait": 2}\n'
        + json.dumps(attempt()).encode()
        + b"\n"
    ]
)
@example([json.dumps(header()).encode()])
def test_both_readers_tell_the_same(contents: list[bytes]) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        for number, content in enumerate(contents):
            (Path(folder) / f"file {number}.jsonl").write_bytes(content)
        assert told_by_dataset(Path(folder)) == told_by_records(Path(folder))
        patched.setattr(module, "WIDE", 0)
        assert told_by_dataset(Path(folder), ASKED) == told_by_records(Path(folder), ASKED)


def test_a_clean_file_is_read_by_duckdb_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = [header(), started(), attempt(extra={"a": "ü"}, price=0.003), event(), footer()]
    content = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in said)
    (tmp_path / "run.jsonl").write_text(content, "utf-8")
    monkeypatch.setattr("pytest_captcha_qa.reporting.dataset.loading.scan", None)

    asked = ("id", "slug", "outcome", "wait", "release", "page", "fault", "error_message", "price")
    assert told_by_dataset(tmp_path, asked)["r1"]["attempts"] == [
        (IDS[0], "signup", "ok", 21.4, "1.3.0", 0.4, None, None, 0.003)
    ]


@pytest.mark.parametrize("sure", [True, False], ids=["proven", "sampled"])
def test_a_file_of_another_program_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sure: bool) -> None:
    if not sure:
        monkeypatch.setattr(staging, "PROVEN", 1 << 14)
        monkeypatch.setattr(staging, "SAMPLE", 1)
    said = [header(), *(attempt(id=f"{number:032x}", submits="1") for number in range(40)), footer(attempts=40)]
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in said))

    with open_dataset([tmp_path]) as dataset:
        assert dataset.damaged == 40
        assert dataset.rows("SELECT complete, attempts FROM runs") == [(False, 0)]


ASKED = ("slug", "outcome", "wait", "release", "page", "fault", "error_code", "attempt", "account")
ALL = (*ASKED, "id", "error_message", "price", "nodeid", "polls")


def told_by_records(folder: Path, fields: Sequence[str] = ALL) -> dict[str, Any]:
    runs = read([folder])
    return {
        run.run_id: {
            "complete": run.complete,
            "lost": len(run.lost),
            "changed": len(run.releases) > 1,
            "time_scale": run.time_scale,
            "attempts": in_order(tuple(told(run, one, name) for name in fields) for one in run.attempts),
            "events": in_order((one.name, json.dumps(one.data, sort_keys=True)) for one in run.events),
        }
        for run in runs
    } | {"damaged": sum(file.damaged for run in runs for file in run.files)}


def told(run: Run, one: AttemptLine, name: str) -> Any:
    match name:
        case "release":
            return one.release or next(iter(run.releases), None)
        case "page":
            return one.seconds.get("page")
        case "error_code" | "error_message":
            return (one.error or {}).get(name.removeprefix("error_"))
    return getattr(one, name)


def told_by_dataset(folder: Path, fields: Sequence[str] = ALL) -> dict[str, Any]:
    with open_dataset([folder]) as dataset:
        runs: dict[str, Any] = {}
        for run_id, complete, lost, changed, scale in dataset.rows(
            "SELECT run_id, bool_and(complete), sum(lost)::INTEGER, bool_or(release_changed), min(time_scale)"
            " FROM runs GROUP BY run_id"
        ):
            runs[run_id] = {"complete": complete, "lost": lost, "changed": changed, "time_scale": scale}
            attempts = dataset.rows(f"SELECT {', '.join(fields)} FROM attempts WHERE run_id = ?", [run_id])
            events = dataset.rows("SELECT name, data FROM events WHERE run_id = ?", [run_id])
            runs[run_id]["attempts"] = in_order(attempts)
            runs[run_id]["events"] = in_order(
                (name, json.dumps(json.loads(data), sort_keys=True)) for name, data in events
            )
        return runs | {"damaged": dataset.damaged}


def in_order(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)


def in_other_words(line: dict[str, Any]) -> str:
    """A line as another program may write it: keys in another order, spaces, a field that we do not know."""
    return json.dumps(dict(sorted({**line, "mood": {"good": [1]}}.items(), reverse=True))) + "\n"


def of_another_program(number: int, **fields: Any) -> dict[str, Any]:
    said = attempt(id=f"attempt {number}", ts="2026-11-29T11:18:03.120456+00:00", wait=21.44449, **fields)
    return said | {"nodeid": "test_login.py::info[NaN, nan]"}


@pytest.mark.parametrize("proven", [1 << 30, 1 << 10], ids=["each field", "sampled"])
def test_files_of_another_program_are_read_by_duckdb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proven: int
) -> None:
    monkeypatch.setattr(staging, "PROVEN", proven)
    monkeypatch.setattr("pytest_captcha_qa.reporting.dataset.loading.scan", None)
    sound = [of_another_program(number) for number in range(60)]
    lost = [started(id="lost", key_mode=None), *(started(id=one["id"]) for one in sound)]
    joined = [header(), *lost, *sound, footer(attempts=60), header(run_id="r2"), *sound, footer(attempts=60)]
    (tmp_path / "joined.jsonl").write_text("".join(map(in_other_words, joined)))
    (tmp_path / "bare.jsonl").write_text("".join(in_other_words(one | {"run_id": "r3"}) for one in sound))

    with open_dataset([tmp_path]) as dataset:
        runs = dataset.rows("SELECT run_id, complete, attempts, lost FROM runs ORDER BY ALL")
        assert runs == [("r1", True, 61, 1), ("r2", True, 60, 0), ("r3", False, 60, 0)]
        waits = dataset.rows("SELECT DISTINCT wait, page, nodeid FROM attempts WHERE outcome <> 'lost'")
        assert waits == [(21.444, 0.4, "test_login.py::info[NaN, nan]")]
        assert dataset.rows("SELECT id, line FROM attempts WHERE outcome = 'lost'") == [("lost", 2)]
        assert dataset.rows("SELECT max(line) FROM attempts WHERE run_id = 'r2'") == [(184,)]


WRONG = [{"wait": "soon"}, {"outcome": "fine"}, {"fault": "nobody"}, {"http_status": "x"}, {"submits": None}]


@pytest.mark.parametrize("proven", [1 << 30, 1 << 10], ids=["each field", "sampled"])
def test_what_is_wrong_in_a_file_of_another_program_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proven: int
) -> None:
    monkeypatch.setattr(staging, "PROVEN", proven)
    said = [header(), *(of_another_program(number) for number in range(40))]
    wrong = [of_another_program(99) | one for one in WRONG]
    lines = [in_other_words(one) for one in (*said, *wrong, footer(attempts=45))]
    (tmp_path / "run.jsonl").write_text("".join([*lines[:20], lines[0][:90] + "\n", *lines[20:]]))

    with open_dataset([tmp_path]) as dataset:
        assert [problem.partition("run.jsonl:")[2] for problem in dataset.problems[:6]] == [
            "21: not a line of JSON",
            "43: 'wait' is not a number",
            "44: 'outcome' is not one of failed, indeterminate, lost, ok",
            "45: 'fault' is not one of config, infrastructure, product, provider, scope, undetermined",
            "46: 'http_status' is not a whole number",
            "47: 'submits' is not a whole number",
        ]
        assert dataset.rows("SELECT complete, attempts FROM runs") == [(False, 40)]


@pytest.mark.parametrize("proven", [1 << 30, 1 << 10], ids=["each field", "sampled"])
def test_torn_and_joined_lines_of_our_own_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proven: int
) -> None:
    monkeypatch.setattr(staging, "PROVEN", proven)
    ids = [f"{number:032x}" for number in range(30)]
    pairs = [[packed(started(id=one)), packed(attempt(id=one))] for one in ids]
    torn = packed(started(id="f" * 32))
    lines = [packed(header()), *(line for pair in pairs for line in pair), torn[:150] + pairs[0][1], torn[:99]]
    (tmp_path / "run.jsonl").write_text("".join(lines))

    with open_dataset([tmp_path]) as dataset:
        assert [problem.partition("run.jsonl:")[2] for problem in dataset.problems] == [
            "62: not a line of JSON",
            "63: not a line of JSON, perhaps cut off",
        ]
        assert dataset.rows("SELECT attempts, lost FROM runs") == [(30, 0)]
