"""The pytest plugin: hooks only. Without an environment nothing else of the package is imported."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_captcha_qa.plugin import newhooks, options
from pytest_captcha_qa.plugin.fixtures import (
    _captcha_case,
    captcha_attempt,
    captcha_env,
    captcha_form,
    captcha_form_args,
    captcha_form_name,
    captcha_http,
    captcha_identity,
    captcha_probe_family,
    captcha_probes,
    captcha_session,
    captcha_solver,
    captcha_standin,
    captcha_token,
    captcha_verify,
)
from pytest_captcha_qa.plugin.markers import SIGNATURE, is_captcha_test

__all__ = [
    "_captcha_case",
    "captcha_attempt",
    "captcha_env",
    "captcha_form",
    "captcha_form_args",
    "captcha_form_name",
    "captcha_http",
    "captcha_identity",
    "captcha_probe_family",
    "captcha_probes",
    "captcha_session",
    "captcha_solver",
    "captcha_standin",
    "captcha_token",
    "captcha_verify",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Mount the option table."""
    options.mount(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Make the hooks for extensions known, so that a conftest.py may always implement them."""
    pluginmanager.add_hookspecs(newhooks)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and, with an environment, the hooks that do the work."""
    config.addinivalue_line("markers", SIGNATURE)
    asked = {"suite": options.early(config, "captcha_suite"), "conformance": options.early(config, "captcha_probes")}
    if any(asked.values()):
        from pytest_captcha_qa.plugin.suite import SuiteHooks

        chosen = bool(options.early(config, "captcha_env"))
        parts = [part for part, wanted in asked.items() if wanted]
        config.pluginmanager.register(SuiteHooks(parts, with_environment=chosen), "captcha-qa-suite")
    if options.early(config, "captcha_env"):
        from pytest_captcha_qa.plugin.activating import activate

        activate(config)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip captcha tests, or refuse them, when no environment was chosen."""
    if not options.early(config, "captcha_env") and any(map(is_captcha_test, items)):
        from pytest_captcha_qa.plugin import passive

        required = options.early(config, "captcha_required")
        passive.refuse_all(config, items) if required else passive.skip_all(items)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """End the run in the process that started the xdist workers, if one of them refused its tests."""
    from pytest_captcha_qa.plugin import passive

    passive.raise_refusal(node)
