"""The definitions under reports/: they ask for what is there, and Prometheus understands them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_captcha_qa.observe.metric_table import FAMILIES, markdown_table, series_names

ROOT = Path(__file__).parents[3]
RULES = ROOT / "reports" / "alerts" / "captcha-qa.rules.yaml"
DASHBOARD = json.loads((ROOT / "reports" / "grafana" / "dashboard.json").read_text())
ALERTS = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLES = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}

LABELS = {name: set(family.labels) for family in FAMILIES.values() for name in series_names(family)}
METRIC = re.compile(r"\b(captcha_qa_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
GROUPED = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")
OF_THE_SCRAPE = {"le", "instance", "job"}
NOT_HERE = "no promtool here: .ci/setup fetches it from Debian's packages"


def queries() -> Iterator[tuple[str, str]]:
    """Yield (where it stands, query) of everything that asks for a metric."""
    yield from ((rule["alert"], rule["expr"]) for rule in ALERTS)
    for panel in PANELS:
        yield from ((panel["title"], target["expr"]) for target in panel["targets"])
    yield from ((name, each["definition"]) for name, each in VARIABLES.items() if each["type"] == "query")
    yield from ((each["name"], each["expr"]) for each in DASHBOARD["annotations"]["list"] if "expr" in each)


QUERIES = list(queries())


@pytest.mark.parametrize(("where", "query"), QUERIES, ids=[where for where, _ in QUERIES])
def test_every_metric_and_label_that_is_asked_for_exists(where: str, query: str) -> None:
    used = METRIC.findall(query)
    assert used, query
    for name, matchers in used:
        assert name in LABELS, f"{where} asks for {name}"
        assert set(MATCHER.findall(re.sub(r'"[^"]*"', '""', matchers))) <= LABELS[name] | {"le"}, f"{where}: {matchers}"
    grouped = {label.strip() for group in GROUPED.findall(query) for label in group.split(",")}
    assert grouped <= set().union(*(LABELS[name] for name, _ in used)) | OF_THE_SCRAPE, where


def test_every_metric_is_shown_or_watched() -> None:
    asked = {name for _, query in QUERIES for name, _ in METRIC.findall(query)}

    unseen = [family.name for family in FAMILIES.values() if not asked & set(series_names(family))]
    assert unseen == ["run_timestamp_seconds"]


def test_times_and_rates_of_different_pools_are_never_added_up() -> None:
    for where, query in QUERIES:
        for name, matchers in METRIC.findall(query):
            pinned = set(MATCHER.findall(matchers)) | {label for g in GROUPED.findall(query) for label in g.split(", ")}
            if name.endswith("_bucket"):
                assert {"provider", "key_mode", "time_scale", "type"} <= pinned, where
            if name == "captcha_qa_verifications_total":
                assert {"provider", "key_mode"} <= pinned, where


@pytest.mark.parametrize("rule", ALERTS, ids=[rule["alert"] for rule in ALERTS])
def test_an_alert_says_what_to_do_and_how_soon(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert re.fullmatch(r"\d+[mh]", rule["for"])
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}
    labels = set().union(*(LABELS[name] for name, _ in METRIC.findall(rule["expr"])))
    assert set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values()))) <= labels


def test_the_dashboard_is_whole() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    places = [tuple(panel["gridPos"][side] for side in "xywh") for panel in PANELS]
    used = {name for name in re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD)) if not name.startswith("__")}

    assert len(set(ids)) == len(ids)
    assert all(panel["title"] and panel["targets"] and panel["description"] is not None for panel in PANELS)
    assert all(x + w <= 24 for x, _, w, _ in places)
    assert not [(a, b) for a in places for b in places if a < b and _overlap(a, b)]
    assert used == set(VARIABLES)
    assert {"datasource", "env", "project", "type", "form"} <= set(VARIABLES)
    sources = [each["datasource"] for panel in PANELS for each in (panel, *panel["targets"])]
    assert {source["uid"] for source in sources} == {"${datasource}"}


def _overlap(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    (x, y, w, h), (x2, y2, w2, h2) = one, other
    return x < x2 + w2 and x2 < x + w and y < y2 + h2 and y2 < y + h


def test_the_documentation_has_every_metric() -> None:
    assert markdown_table() in (ROOT / "docs" / "metrics.md").read_text()


# As Prometheus itself reads them.


@pytest.fixture(scope="module")
def promtool() -> Callable[..., str]:
    """`promtool(*arguments)` returns what it says; it must have nothing against them."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    program = shutil.which("promtool", path=path)
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail(NOT_HERE)
        pytest.skip(NOT_HERE)

    def run(*arguments: str | Path) -> str:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_prometheus_takes_the_rules(promtool: Callable[..., str]) -> None:
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", RULES)


def test_alerts_fire_when_they_must_and_not_before(promtool: Callable[..., str], tmp_path: Path) -> None:
    files = []
    for cases in (ROOT / "fixtures" / "alerts").glob("*.yaml"):
        files.append(tmp_path / cases.name)
        files[-1].write_text(cases.read_text().replace("RULES", str(RULES)))

    assert promtool("test", "rules", *files).count("SUCCESS") == len(files) == 2


def test_prometheus_understands_the_dashboard(promtool: Callable[..., str], tmp_path: Path) -> None:
    asked = [query for where, query in QUERIES if where not in VARIABLES]
    expressions = [re.sub(r"\$(?:__range|__interval|window)\b", "1d", query) for query in asked]
    rules = [{"record": f"dashboard:query:{number}", "expr": each} for number, each in enumerate(expressions)]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))

    assert "SUCCESS" in promtool("check", "rules", tmp_path / "rules.yaml")
