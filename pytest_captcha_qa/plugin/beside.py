"""Keeps captcha tests away from the site while a destructive probe of the same run is alone there."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack

import pytest

from pytest_captcha_qa.errors import CaptchaQAError
from pytest_captcha_qa.plugin import boundary
from pytest_captcha_qa.plugin.markers import is_captcha_test
from pytest_captcha_qa.plugin.session import CaptchaRun

_REFUSED: pytest.StashKey[CaptchaQAError] = pytest.StashKey()


class BesideHooks:
    """Registered in a run with destructive probes: each captcha test has a place at the site from setup to teardown."""

    def __init__(self, run: CaptchaRun) -> None:
        """Keep the run."""
        self._run = run

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Wait for a place, outside of what pytest-timeout measures, and keep it for all tries of the test."""
        with ExitStack() as place:
            if is_captcha_test(item):
                self._take(item, place)
            return (yield)

    def _take(self, item: pytest.Item, place: ExitStack) -> None:
        try:
            place.enter_context(self._run.engine.beside())
        except CaptchaQAError as error:
            item.stash[_REFUSED] = error

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Fail a test that got no place."""
        refused = item.stash.get(_REFUSED, None)
        if refused is not None:
            boundary.call(_raise, refused)


def _raise(error: CaptchaQAError) -> None:
    raise error
