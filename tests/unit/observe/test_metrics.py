from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pytest_captcha_qa.model.record import AttemptLine, EventLine, Footer, Line, Started
from pytest_captcha_qa.observe.exposing import wsgi_app
from pytest_captcha_qa.observe.metric_table import FAMILIES, PREFIX
from pytest_captcha_qa.observe.metrics import MOST_VALUES, OTHER, Metrics

TS = "2026-11-29T11:18:03.120Z"
MOMENT = 1795951083.12
STAGES = {"page": 0.4, "blocked": 21.5, "queue": 0.1, "solve": 20.6, "detect": 0.8, "submit": 0.3, "verify": 0.1}

Attempts = Callable[..., AttemptLine]


class Counted:
    """Metrics, and what a scrape reads of them."""

    def __init__(self) -> None:
        self.metrics = Metrics()

    def tell(self, *lines: Line, time_scale: float = 1.0) -> Counted:
        listen = self.metrics.listener("staging", time_scale=time_scale)
        for line in lines:
            listen(line)
        return self

    def scraped(self) -> str:
        environ: dict[str, Any] = {"REQUEST_METHOD": "GET", "PATH_INFO": "/metrics", "QUERY_STRING": ""}
        return b"".join(wsgi_app(self.metrics)(environ, lambda status, headers: None)).decode()

    def samples(self, name: str) -> Iterator[tuple[dict[str, str], float]]:
        for family in text_string_to_metric_families(self.scraped()):
            yield from ((one.labels, one.value) for one in family.samples if one.name == PREFIX + name)

    def value(self, name: str, **labels: str) -> float:
        """Return the sum of the samples that have these labels."""
        found = [value for told, value in self.samples(name) if labels.items() <= told.items()]
        assert found, f"no {name} with {labels}"
        return sum(found)


@pytest.fixture
def counted() -> Counted:
    return Counted()


def event(name: str, **data: object) -> EventLine:
    return EventLine(ts=TS, name=name, run_id="r1", data=data)


def test_a_good_attempt_is_counted_with_its_pool(counted: Counted, attempt: Attempts) -> None:
    counted.tell(attempt(seconds=STAGES, wait=21.4))
    pool = {
        "env": "staging", "project": "default", "form": "signup", "type": "turnstile", "provider": "captchaai",
        "key_mode": "live", "release": "1.3.0", "worker_version": "0.3.0",
    }  # fmt: skip

    told = {"purpose": "check", "expect": "accept", "outcome": "ok", "fault": "none"}
    assert list(counted.samples("attempts_total")) == [({**pool, **told}, 1.0)]
    assert counted.value("verifications_total", **pool, status="pass") == 1
    assert counted.value("submits_total", **pool) == counted.value("keys_total", **pool) == 1
    assert counted.value("repeated_solves_total", **pool) == 0
    assert counted.value("wait_seconds_sum", **pool, time_scale="1") == 21.4
    assert counted.value("wait_seconds_bucket", le="20.0") == 0
    assert counted.value("wait_seconds_bucket", le="25.0") == 1
    assert counted.value("form_up") == counted.value("provider_up") == 1
    assert counted.value("last_pass_timestamp_seconds") == MOMENT


def test_refusals_are_counted_from_zero(counted: Counted, attempt: Attempts) -> None:
    counted.tell(attempt())
    assert counted.value("verifications_total", status="fail") == 0

    counted.tell(attempt(verify_status="fail", outcome="failed", fault="product"))
    assert (
        counted.value("verifications_total", status="fail") == counted.value("verifications_total", status="pass") == 1
    )


def test_our_side_and_the_provider_s_side_are_apart(counted: Counted, attempt: Attempts) -> None:
    counted.tell(attempt(seconds=STAGES, wait=21.4))

    stages = {labels["stage"]: value for labels, value in counted.samples("stage_seconds_sum")}
    assert stages == {"page": 0.4, "queue": 0.1, "submit": 0.3, "verify": 0.1}
    assert counted.value("blocked_seconds_sum") == 21.5


def test_what_was_asked_to_be_refused_is_in_no_rate_and_no_wait(counted: Counted, attempt: Attempts) -> None:
    counted.tell(
        attempt(expect="refuse", wait=8.0, verify_status="fail"),
        attempt(purpose="probe", wait=8.0, verify_status="fail"),
        attempt(purpose="canary", wait=8.0),
    )

    assert counted.value("attempts_total") == 3
    assert list(counted.samples("verifications_total")) == list(counted.samples("wait_seconds_count")) == []


@pytest.mark.parametrize(("source", "counts"), [("solved", 1), ("prefetched", 1), ("reused", 0), ("resumed", 0)])
def test_only_own_solves_tell_how_long_the_service_takes(
    counted: Counted, attempt: Attempts, source: str, counts: int
) -> None:
    counted.tell(attempt(source=source, wait=8.0))

    assert sum(value for _, value in counted.samples("wait_seconds_count")) == counts


def test_scaled_times_are_kept_apart(counted: Counted, attempt: Attempts) -> None:
    counted.tell(attempt(wait=8.0)).tell(attempt(wait=0.08), time_scale=0.01)

    assert counted.value("wait_seconds_sum", time_scale="1") == 8.0
    assert counted.value("wait_seconds_sum", time_scale="0.01") == 0.08


def test_submits_beyond_the_first_are_repeated_solves(counted: Counted, attempt: Attempts) -> None:
    counted.tell(attempt(submits=3), attempt(submits=1), attempt(submits=0, source="reused"))

    assert counted.value("repeated_solves_total") == 2
    assert counted.value("keys_total") == 2


@pytest.mark.parametrize(
    ("fault", "form_up", "provider_up"),
    [("product", 0, 1), ("provider", 1, 0), ("infrastructure", 1, 1), ("undetermined", 1, 1)],
)
def test_a_failure_is_told_of_whoever_is_at_fault(
    counted: Counted, attempt: Attempts, fault: str, form_up: int, provider_up: int
) -> None:
    failed = {"outcome": "failed", "fault": fault, "verify_status": "fail", "error": {"code": "x", "message": "text"}}
    counted.tell(attempt(), attempt(**failed))

    assert counted.value("form_up") == form_up
    assert counted.value("provider_up") == provider_up
    assert counted.value("errors_total", fault=fault, code="x") == 1
    assert counted.value("last_pass_timestamp_seconds") == MOMENT


@pytest.mark.parametrize(("outcome", "refuses"), [("ok", 1), ("failed", 0)])
def test_whether_a_form_refuses_is_told(counted: Counted, attempt: Attempts, outcome: str, refuses: int) -> None:
    counted.tell(attempt(expect="refuse", outcome=outcome))

    assert counted.value("form_refuses", form="signup") == refuses


def test_events_and_the_store_s_state(counted: Counted) -> None:
    counted.tell(event("store_degraded", store="redis"), event("store_back"), event("store_degraded"))

    assert counted.value("events_total", env="staging", event="store_degraded") == 2
    assert counted.value("store_up", env="staging") == 0


@pytest.mark.parametrize(
    ("verdict", "counts", "told"),
    [("unsafe", True, [1.0]), ("unsafe", False, [0.0]), ("safe", False, [0.0]), ("inconclusive", False, [])],
)
def test_a_probe_s_last_word(counted: Counted, verdict: str, counts: bool, told: list[float]) -> None:
    probe = {"form": "signup", "probe": "V01", "severity": "critical", "key_mode": "standin"}
    counted.tell(event("probe", verdict=verdict, counts=counts, **probe))

    assert [value for _, value in counted.samples("probe_unsafe")] == told


def test_attempts_in_flight(counted: Counted, attempt: Attempts) -> None:
    def started(id: str) -> Started:
        return Started(ts=TS, id=id, slug="signup", captcha="turnstile", env="staging", run_id="r1", purpose="check")

    counted.tell(started("a"), started("b"), attempt(id="a"), attempt(id="never told"))

    assert counted.value("in_flight", form="signup") == 1


def test_other_lines_say_nothing(counted: Counted) -> None:
    counted.tell(Footer(ts=TS, run_id="r1", complete=True))

    assert [line for line in counted.scraped().splitlines() if not line.startswith("#")] == []


def test_no_label_names_a_task_a_test_or_an_error_s_text(counted: Counted, attempt: Attempts) -> None:
    secrets = {"task_id": "TASK", "run_id": "RUN", "nodeid": "NODE", "worker": "WORKER", "token_prefix": "PREFIX"}
    counted.tell(
        attempt(**secrets, id="ID", account="ACCOUNT", fault="product", error={"code": "x", "message": "TEXT"})
    )

    assert [word for word in (*secrets.values(), "ID=", "ACCOUNT", "TEXT") if word in counted.scraped()] == []


HOSTILE = ['a"b', "a\nb", "a\\b", "{x}", "\u2028", "\x1b[31m", "й" * 500, ""]


def test_hostile_values_stay_one_label(counted: Counted, attempt: Attempts) -> None:
    counted.tell(*(attempt(slug=value, release=value or None) for value in HOSTILE))

    assert len(list(counted.samples("attempts_total"))) == len(HOSTILE)
    assert max(len(labels["form"]) for labels, _ in counted.samples("attempts_total")) <= 120


def test_a_label_has_only_so_many_values(counted: Counted, attempt: Attempts) -> None:
    counted.tell(*(attempt(slug=f"form{number}") for number in range(MOST_VALUES + 50)))

    forms = {labels["form"]: value for labels, value in counted.samples("attempts_total")}
    assert len(forms) == MOST_VALUES + 1
    assert forms[OTHER] == 50


def test_two_programs_metrics_are_apart(attempt: Attempts) -> None:
    one, other = Counted().tell(attempt()), Counted()

    assert one.value("attempts_total") == 1
    assert list(other.samples("attempts_total")) == []


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_names_follow_the_customs(family: Any) -> None:
    kind = str(family.kind)

    assert family.name.endswith("_total") == (kind == "counter")
    assert family.name.endswith("_seconds") or kind != "histogram"
    assert bool(family.buckets) == (kind == "histogram")
    assert not {"task_id", "run_id", "nodeid", "id", "message"} & set(family.labels)
    assert family.help.endswith(".")


@pytest.mark.parametrize(
    "name",
    ['a"b\\c\nd', "</script>", "\u202e", "\x00\x1b[31m", "\ud800half", "{}", "", "__proto__", "\u2028", "W" * 500],
)
def test_a_name_of_any_kind_leaves_a_scrape_that_can_be_read(counted: Counted, attempt: Attempts, name: str) -> None:
    counted.tell(attempt(slug=name, provider=name, project=name, release=name, worker_version=name), event(name))

    assert counted.value("attempts_total") == 1
    assert counted.value("events_total") == 1
