"""Hooks of the plugin as extensions: one for each conftest.py or plugin that implements any of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.reporting.verdict_file import relative
from pytest_captcha_qa.wiring.extensions import FORM_OPENED, PROVIDER, RECORD_FIELDS, Extension

HOOKS = {
    RECORD_FIELDS: "pytest_captcha_record",
    FORM_OPENED: "pytest_captcha_form_opened",
    PROVIDER: "pytest_captcha_provider",
}


def hook_extensions(config: pytest.Config) -> list[Extension]:
    """Return the hooks that are implemented, in the order in which pytest calls them.

    Each plugin is called for itself, so that one that raises takes nothing from the others.
    """
    found: dict[int, tuple[Any, dict[str, object]]] = {}
    for function, hook in HOOKS.items():
        for plugin in _implementing(config, hook):
            found.setdefault(id(plugin), (plugin, {}))[1][function] = _caller(config, hook, plugin)
    return [_extension(config, plugin, functions) for plugin, functions in found.values()]


def _implementing(config: pytest.Config, hook: str) -> Iterator[Any]:
    for one in reversed(getattr(config.hook, hook).get_hookimpls()):
        if not (one.wrapper or one.hookwrapper):
            yield one.plugin


def _caller(config: pytest.Config, hook: str, plugin: Any) -> Callable[..., object]:
    others = [other for other in config.pluginmanager.get_plugins() if other is not plugin]
    only = config.pluginmanager.subset_hook_caller(hook, remove_plugins=others)
    names = [name for name in only.spec.argnames if name != "config"] if only.spec is not None else []

    def call(*told: object) -> object:
        given = only(config=config, **dict(zip(names, told, strict=True)))
        # Of a hook that is not `firstresult` pytest returns a list, here with one result at most.
        return next(iter(given), None) if isinstance(given, list) else given

    return call


def _extension(config: pytest.Config, plugin: Any, functions: dict[str, object]) -> Extension:
    name = config.pluginmanager.get_name(plugin) or type(plugin).__name__
    file = getattr(plugin, "__file__", None)
    shown = relative(Path(file), config.rootpath) if file and Path(name).is_absolute() else name
    return Extension.of("a hook of pytest", shown, str(file or name), functions, HOOKS)
