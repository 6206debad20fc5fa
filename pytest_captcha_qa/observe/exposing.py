"""Ways out for metrics: an application to mount, a server of their own, a file for node_exporter or a push gateway."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Metric,
    generate_latest,
    make_asgi_app,
    make_wsgi_app,
    start_http_server,
)
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from pytest_captcha_qa.observe.metric_table import PREFIX
from pytest_captcha_qa.observe.metrics import Metrics

LOOPBACK = "127.0.0.1"
_ADDED = frozenset({"counter", "histogram"})
_WHEN_MADE = "_created"
_LAST = "+Inf"
_MOST_SECONDS = 10.0
_log = logging.getLogger("captcha_qa")

_Series = tuple[str, tuple[tuple[str, str], ...]]


def wsgi_app(metrics: Metrics) -> Callable[..., Any]:
    """Return a WSGI application that answers a scrape, for a program that serves HTTP already."""
    return make_wsgi_app(_registry_of(metrics))


def asgi_app(metrics: Metrics) -> Callable[..., Any]:
    """Return the same for ASGI: `Mount("/metrics", asgi_app(metrics))`."""
    return make_asgi_app(_registry_of(metrics))


class MetricsServer:
    """Answers scrapes on a port of its own, in a thread; a context manager that ends it."""

    def __init__(self, metrics: Metrics, port: int, host: str) -> None:
        """Made by `serve_metrics`."""
        self._server, self._thread = start_http_server(port, host, _registry_of(metrics))
        self.port = int(self._server.server_port)
        self.url = f"http://{host}:{self.port}/metrics"

    def close(self) -> None:
        """End it: nothing answers on the port any more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(_MOST_SECONDS)

    def __enter__(self) -> MetricsServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve_metrics(metrics: Metrics, port: int, host: str = LOOPBACK) -> MetricsServer:
    """Return a server that answers scrapes at `/metrics`; port 0 takes a free one.

    Without a `host` only this machine can ask: what forms and releases there are is nobody else's business.

    Raises:
        OSError: the port is taken or not allowed.
    """
    return MetricsServer(metrics, port, host)


def write_textfile(metrics: Metrics, path: Path) -> None:
    """Add what was counted to a file, as a whole, so that a reader never sees half of it.

    Counters go on from what the file says, since to Prometheus a count that every run begins anew is no progress;
    a gauge that this run has not set stays. A file that cannot be understood is replaced.

    Raises:
        OSError: it cannot be written.
    """
    families = _sum(_earlier(path), _registry_of(metrics).collect())
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_bytes(generate_latest(_registry(families)))
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


class _Families:
    """A collector of what another one has, or of what was read."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self.collect = collect


def _registry_of(metrics: Metrics) -> CollectorRegistry:
    """Return the metrics without when each series was made: twice as many series, of use to nobody here."""
    return _registry_by(lambda: map(_without_times_of_making, metrics.registry.collect()))


def _registry(families: Iterable[Metric]) -> CollectorRegistry:
    found = list(families)
    return _registry_by(lambda: found)


def _registry_by(collect: Callable[[], Iterable[Metric]]) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_Families(collect))
    return registry


def _without_times_of_making(family: Metric) -> Metric:
    family.samples = [sample for sample in family.samples if not sample.name.endswith(_WHEN_MADE)]
    return family


def _earlier(path: Path) -> list[Metric]:
    try:
        found = list(text_string_to_metric_families(path.read_text("utf-8")))
    except FileNotFoundError:
        return []
    except ValueError as why:
        _log.warning("%s cannot be understood and is written anew: %s", path, type(why).__name__)
        return []
    return [family for family in found if family.name.startswith(PREFIX)]


def _sum(earlier: Iterable[Metric], now: Iterable[Metric]) -> Iterator[Metric]:
    before = {family.name: family for family in earlier}
    for family in now:
        known = before.pop(family.name, None)
        if known is not None and known.type == family.type and _bounds(known) in ((), _bounds(family)):
            family.samples = list(_added(known.samples, family.samples, add=family.type in _ADDED))
        yield family


def _added(earlier: Iterable[Sample], now: Iterable[Sample], *, add: bool) -> Iterator[Sample]:
    values: dict[_Series, float] = {_series(sample): sample.value for sample in earlier}
    for sample in now:
        known = values.get(_series(sample), 0.0) if add else 0.0
        values[_series(sample)] = known + sample.value
    yield from (Sample(name, dict(labels), value) for (name, labels), value in sorted(values.items(), key=_order))


def _series(sample: Sample) -> _Series:
    return sample.name, tuple(sorted(sample.labels.items()))


def _order(entry: tuple[_Series, float]) -> tuple[list[tuple[str, str]], str, float]:
    """Return where a sample stands: beside the others of its series, the buckets of a histogram by their bounds."""
    (name, labels), _ = entry
    bound = dict(labels).get("le", _LAST)
    return [label for label in labels if label[0] != "le"], name, float(bound)


def _bounds(family: Metric) -> tuple[str, ...]:
    """Return the buckets of a histogram: those of another version cannot be added up with ours."""
    return tuple(dict.fromkeys(sample.labels["le"] for sample in family.samples if "le" in sample.labels))
