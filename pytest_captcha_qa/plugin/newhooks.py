"""Hooks that a conftest.py or another plugin may implement; they do what the functions of an extension do.

One that raises loses what it gave and nothing else: the run tells it in its summary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_captcha_qa.engine.ports import Provider
    from pytest_captcha_qa.wiring.extensions import SeenForm, SeenPage
    from pytest_captcha_qa.wiring.team_provider import ProviderSettings


@pytest.hookspec
def pytest_captcha_record(config: pytest.Config, line: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return fields to add to the record of an attempt, under `extra`; `line` is the record so far, as its file has it.

    At most 20 of all extensions together; names are identifiers of at most 40 characters, values texts of at most 200,
    numbers, true, false or None. Secrets of the run are masked.
    """


@pytest.hookspec
def pytest_captcha_form_opened(config: pytest.Config, form: SeenForm, page: SeenPage) -> None:
    """Hear that a form was opened on its granted page."""


@pytest.hookspec(firstresult=True)
def pytest_captcha_provider(config: pytest.Config, name: str, settings: ProviderSettings) -> Provider | None:
    """Return the provider that an account names and this package does not know; None if it is none of yours.

    The configuration says `extensions`, if only `extensions = []`; else such a name is a mistake in it.
    """
