"""Time limits under pytest-timeout: a captcha test gets as long as its solves may take."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from pytest_captcha_qa.model.captcha import facts
from pytest_captcha_qa.model.form import FormSpec
from pytest_captcha_qa.model.policy import Timeouts, total_budget
from pytest_captcha_qa.model.probing import LONGEST_WAIT
from pytest_captcha_qa.plugin.markers import is_captcha_test
from pytest_captcha_qa.plugin.others import is_loaded
from pytest_captcha_qa.plugin.probes import FIXTURE
from pytest_captcha_qa.plugin.reports import FORMS
from pytest_captcha_qa.plugin.session import CaptchaRun

_PLUGIN = _OPTION = "timeout"
_VARIABLE = "PYTEST_TIMEOUT"
# Seconds for what a test does besides, so that an attempt that takes too long ends first and says why.
_BESIDES = 60.0
_MOST_SUBMITS = 80  # of all families of probes at one form, which share its rate


def give_limits(items: Sequence[pytest.Item], run: CaptchaRun) -> None:
    """Give each captcha test without a limit of its own the one that follows from its forms.

    A longer limit for the whole suite stays, a shorter one is for tests that wait for nobody; `--timeout=0` is none.
    """
    config = run.config
    if not is_loaded(config, _PLUGIN) or config.getoption(_OPTION, None) == 0:
        return
    for item in filter(_has_no_limit, items):
        seconds = _seconds(item, run)
        if seconds > _of_the_suite(config):
            item.add_marker(pytest.mark.timeout(seconds))


def _has_no_limit(item: pytest.Item) -> bool:
    return is_captcha_test(item) and item.get_closest_marker(_OPTION) is None


def _of_the_suite(config: pytest.Config) -> float:
    return float(config.getoption(_OPTION, None) or os.environ.get(_VARIABLE) or config.getini(_OPTION) or 0)


def _seconds(item: pytest.Item, run: CaptchaRun) -> float:
    """Return the seconds of an attempt on each form the test names; of the slowest one if it names none."""
    forms = run.environment.forms
    named = [forms[slug] for slug in item.stash.get(FORMS, ()) if slug in forms]
    timeouts = Timeouts(solve=run.environment.account.patience)
    budgets = (total_budget(facts(form.type), timeouts) for form in named or forms.values())
    attempts = sum(budgets) if named else max(budgets, default=0.0)
    probed = FIXTURE in getattr(item, "fixturenames", ())
    return _BESIDES + attempts + (_of_probes(named or [*forms.values()]) if probed else 0.0)


def _of_probes(forms: Sequence[FormSpec]) -> float:
    """Return the seconds that probes may wait for turns at their form's rate, and once for a limit."""
    return LONGEST_WAIT + _MOST_SUBMITS * max((form.spacing for form in forms), default=0.0)
