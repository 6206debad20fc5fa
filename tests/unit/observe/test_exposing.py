from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.observe.exposing import asgi_app, serve_metrics, write_textfile
from pytest_captcha_qa.observe.metrics import Metrics

Attempts = Callable[..., AttemptLine]
PROMTOOL = shutil.which("promtool", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))


def counted(*attempts: AttemptLine) -> Metrics:
    metrics = Metrics()
    listen = metrics.listener("staging")
    for attempt in attempts:
        listen(attempt)
    return metrics


def values(text: str, name: str) -> list[float]:
    families = text_string_to_metric_families(text)
    return [one.value for family in families for one in family.samples if one.name == f"captcha_qa_{name}"]


def test_a_run_is_added_to_what_the_file_says(tmp_path: Path, attempt: Attempts) -> None:
    file = tmp_path / "deep" / "captcha.prom"
    write_textfile(counted(attempt(wait=8.0), attempt(wait=9.0, slug="login")), file)
    write_textfile(counted(attempt(wait=30.0, outcome="failed", fault="product", verify_status="fail")), file)

    text = file.read_text()
    assert sum(values(text, "attempts_total")) == 3
    assert sum(values(text, "wait_seconds_count")) == 3
    assert sum(values(text, "wait_seconds_sum")) == 47.0
    assert sorted(values(text, "form_up")) == [0, 1]
    assert list(file.parent.iterdir()) == [file]


def test_the_buckets_of_a_histogram_stay_in_their_order(tmp_path: Path, attempt: Attempts) -> None:
    file = tmp_path / "captcha.prom"
    for wait in (8.0, 700.0):
        write_textfile(counted(attempt(wait=wait)), file)

    counts = values(file.read_text(), "wait_seconds_bucket")
    assert counts == sorted(counts)
    assert counts[-1] == 2


@pytest.mark.parametrize("text", ["", "captcha_qa_attempts_total{", "\x00\xff", 'other{a="b"} 1\n'])
def test_a_file_that_is_none_of_ours_is_written_anew(tmp_path: Path, attempt: Attempts, text: str) -> None:
    file = tmp_path / "captcha.prom"
    file.write_text(text, encoding="latin-1")
    write_textfile(counted(attempt()), file)

    assert values(file.read_text(), "attempts_total") == [1.0]


def test_buckets_of_another_version_are_not_added_up(tmp_path: Path, attempt: Attempts) -> None:
    file = tmp_path / "captcha.prom"
    write_textfile(counted(attempt(wait=8.0)), file)
    file.write_text(file.read_text().replace('le="12.5"', 'le="13.5"'))
    write_textfile(counted(attempt(wait=8.0)), file)

    assert values(file.read_text(), "wait_seconds_count") == [1.0]
    assert values(file.read_text(), "attempts_total") == [2.0]


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, attempt: Attempts) -> None:
    (tmp_path / "captcha.prom").mkdir()

    with pytest.raises(OSError, match=r"captcha\.prom"):
        write_textfile(counted(attempt()), tmp_path / "captcha.prom")
    assert [path.name for path in tmp_path.iterdir()] == ["captcha.prom"]


@pytest.mark.skipif(PROMTOOL is None and os.environ.get("CI") != "true", reason="no promtool here, see .ci/setup")
def test_prometheus_itself_has_nothing_against_it(tmp_path: Path, attempt: Attempts) -> None:
    metrics = counted(attempt(seconds={"page": 0.4}, slug='o"dd\\'), attempt(fault="provider", outcome="failed"))
    metrics.tell_run("staging", exit_code=12, at=1.5)
    write_textfile(metrics, tmp_path / "captcha.prom")
    checked = subprocess.run(
        [PROMTOOL or "promtool", "check", "metrics"],
        input=(tmp_path / "captcha.prom").read_text(), capture_output=True, text=True, timeout=30,
    )  # fmt: skip

    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_an_application_answers_scrapes(attempt: Attempts) -> None:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/metrics", "query_string": b"", "headers": []}
    asyncio.run(asgi_app(counted(attempt()))(scope, receive, send))

    assert sent[0]["status"] == 200
    assert values(sent[1]["body"].decode(), "attempts_total") == [1.0]


def test_the_server_answers_this_machine_until_it_is_closed(attempt: Attempts) -> None:
    metrics = counted(attempt())
    with serve_metrics(metrics, 0) as server:
        assert server.url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(server.url, timeout=5) as reply:
            assert values(reply.read().decode(), "attempts_total") == [1.0]
        with pytest.raises(OSError, match="in use"):
            serve_metrics(metrics, server.port)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(server.url, timeout=5)
