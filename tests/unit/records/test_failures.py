from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.model.attempt import Fault, Outcome, Result, Verdict, VerifyStatus
from pytest_captcha_qa.model.evidence import Exchange
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.records.failures import MOST_FAILURES, FailureFolder, failures_folder, kept_of, read_kept

LINE = AttemptLine(
    ts="2026-11-29T11:18:03.120Z",
    id="5f00",
    slug="signup",
    captcha="turnstile",
    task_id="1",
    wait=8.0,
    verify_status="fail",
    env="staging",
    release="1.3.0",
    run_id="r1",
    project="default",
    account="main",
    provider="captchaai",
    key_mode="live",
    purpose="check",
    expect="accept",
    outcome="failed",
    fault="product",
    error={"code": "verdict", "message": "refused"},
    source="solved",
    generation=1,
    submits=1,
    polls=2,
    seconds={"page": 0.12345, "submit": 0.2},
    token_prefix=None,
    http_status=422,
    variant=None,
    attempt=1,
    worker=None,
    worker_version="0.3.0",
    nodeid="t.py::test_signup",
)
OUTCOME = Outcome(
    Result.FAILED, Verdict(VerifyStatus.FAIL, "refused"), fault=Fault.PRODUCT, tokens_tried=2, control="tokens are good"
)
PAGE = Exchange(
    method="GET",
    url=Url.parse("https://shop.example/signup?a=b"),
    headers={"Accept": "*/*", "Cookie": None},
    step="page",
    fields=(("email", 16),),
    status=200,
    answer_headers={"content-type": "text/html"},
    text="<p>Hello</p>",
)


NO_PAGES: list[dict[str, Any]] = [
    {"status": 500}, {"step": "submit"}, {"answer_headers": {"content-type": "text/plain"}}, {"status": None},
]  # fmt: skip


def folder(place: Path, **changes: Any) -> FailureFolder:
    parts: dict[str, Any] = {"clean": lambda text: text, "inventory": lambda page: {"forms": [page.step]}}
    return FailureFolder(place, **(parts | changes))


def exchange_json(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place / "5f00" / "exchange.json").read_text())
    return found


def test_a_failed_attempt_leaves_its_line_and_what_was_exchanged(tmp_path: Path) -> None:
    folder(tmp_path).keep(LINE, OUTCOME, [PAGE])
    record = json.loads((tmp_path / "5f00" / "record.json").read_text())
    assert (record["$type"], record["id"], record["fault"]) == ("attempt", "5f00", "product")
    assert exchange_json(tmp_path) == {
        "id": "5f00",
        "form": "signup",
        "tokens_tried": 2,
        "control": "tokens are good",
        "seconds": {"page": 0.123, "submit": 0.2},
        "page": {"forms": ["page"]},
        "exchanges": [
            {
                "step": "page",
                "method": "GET",
                "url": "https://shop.example/signup",
                "headers": {"Accept": "*/*", "Cookie": None},
                "fields": [{"name": "email", "length": 16}],
                "status": 200,
                "answer_headers": {"content-type": "text/html"},
                "excerpt": "Hello",
                "no_answer": None,
            }
        ],
    }


def test_without_a_page_there_is_no_inventory(tmp_path: Path) -> None:
    folder(tmp_path).keep(LINE, OUTCOME, [replace(PAGE, **change) for change in NO_PAGES])
    assert exchange_json(tmp_path)["page"] is None


def test_every_text_is_cleaned_once_more(tmp_path: Path) -> None:
    folder(tmp_path, clean=lambda text: text.replace("signup", "***")).keep(LINE, OUTCOME, [PAGE])
    assert "signup" not in (tmp_path / "5f00" / "exchange.json").read_text()


@pytest.mark.parametrize("failure", [OSError("full"), ValueError("odd"), RecursionError()])
def test_what_cannot_be_kept_is_logged_and_raises_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, failure: BaseException
) -> None:
    def broken(page: Exchange) -> dict[str, Any]:
        raise failure

    with caplog.at_level(logging.WARNING, "captcha_qa"):
        folder(tmp_path, inventory=broken).keep(LINE, OUTCOME, [PAGE])
    assert f"the evidence of attempt 5f00 is not kept in {tmp_path / '5f00'}" in caplog.text
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_raises_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "failures").write_text("a file")
    folder(tmp_path / "failures").keep(LINE, OUTCOME, [PAGE])
    assert "NotADirectoryError" in caplog.text


def test_an_interrupt_is_not_swallowed(tmp_path: Path) -> None:
    def interrupted(page: Exchange) -> dict[str, Any]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        folder(tmp_path, inventory=interrupted).keep(LINE, OUTCOME, [PAGE])


def test_a_run_leaves_a_bounded_number_of_failures(tmp_path: Path) -> None:
    sink = folder(tmp_path)
    for number in range(MOST_FAILURES + 5):
        sink.keep(replace(LINE, id=str(number)), OUTCOME, [])
    assert len(list(tmp_path.iterdir())) == MOST_FAILURES


def test_the_evidence_of_a_record_is_found_beside_its_folder(tmp_path: Path) -> None:
    records = tmp_path / "reports" / "records"
    folder(failures_folder(records)).keep(LINE, OUTCOME, [PAGE])
    found = kept_of(records / "staging" / "r1.jsonl", "5f00")
    assert found == tmp_path / "reports" / "failures" / "5f00"
    kept = read_kept(found)
    assert (kept.tokens_tried, kept.control) == (2, "tokens are good")


@pytest.mark.parametrize("id", ["5f01", "", "../../etc", "/etc"])
def test_an_id_without_evidence_finds_none(tmp_path: Path, id: str) -> None:
    assert kept_of(tmp_path / "reports" / "records" / "staging" / "r1.jsonl", id) is None


def test_a_record_file_without_folders_around_it_finds_none() -> None:
    assert kept_of(Path("r1.jsonl"), "5f00") is None


@pytest.mark.parametrize("content", ["", "[]", "{half", '{"tokens_tried": "2", "control": 7}', "\x00"])
def test_evidence_that_somebody_changed_adds_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "exchange.json").write_text(content)
    kept = read_kept(tmp_path)
    assert (kept.folder, kept.tokens_tried, kept.control) == (tmp_path, None, None)


def test_a_vanished_folder_adds_nothing(tmp_path: Path) -> None:
    assert read_kept(tmp_path / "gone").tokens_tried is None
