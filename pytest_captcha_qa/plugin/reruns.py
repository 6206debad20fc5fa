"""What pytest-rerunfailures is told, and asked: an outage is not worth another try, and every try may cost."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import Any

import pytest

from pytest_captcha_qa.plugin import reports
from pytest_captcha_qa.plugin.others import is_loaded

PLUGIN = "rerunfailures"


def most_tries(item: pytest.Item) -> int:
    """Return how often pytest-rerunfailures lets a test run at most, 1 without it: its marker goes before options."""
    config = item.config
    if not is_loaded(config, PLUGIN):
        return 1
    given = [config.getoption("reruns", None), config.getini("reruns")]
    forced, marked = config.getoption("force_reruns", None), _marked(item)
    if forced is None and marked is not None and config.getoption("reruns_mode", None) == "append":
        return 1 + marked + _first_count(given)
    return 1 + _first_count([forced, marked, *given])


def _marked(item: pytest.Item) -> int | None:
    marker = item.get_closest_marker("flaky")
    if marker is None:
        return None
    return _first_count([marker.kwargs.get("reruns"), *marker.args[:1], 1])


def _first_count(given: Sequence[Any]) -> int:
    """Return the first of the values that is a number, 0 if none is."""
    for value in given:
        with suppress(TypeError, ValueError):
            return max(0, int(value))
    return 0


class RerunHooks:
    """Registered where pytest-rerunfailures is active, in the process that runs the tests."""

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Keep a test from being run again whose failure another try cannot change.

        The plugin's own marker is read anew after each phase, and the nearest decides over all others and over the
        options. It is put there inside the plugin's own wrapper, which at teardown keeps fixtures alive for a rerun.
        """
        if reports.is_hopeless(item, call):
            item.add_marker(pytest.mark.flaky(reruns=0, condition=False), append=False)
        return (yield)
