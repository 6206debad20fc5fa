"""What pytest-rerunfailures is told, and asked: an outage is not worth another try, and every try may cost."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress

import pytest

from pytest_captcha_qa.plugin import reports

PLUGIN = "rerunfailures"


def most_tries(config: pytest.Config) -> int:
    """Return how often the options of pytest-rerunfailures let a test run at most, 1 without it."""
    if not config.pluginmanager.hasplugin(PLUGIN):
        return 1
    for given in (config.getoption("force_reruns", None), config.getoption("reruns", None), config.getini("reruns")):
        with suppress(TypeError, ValueError):
            return 1 + max(int(given), 0)
    return 1


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
