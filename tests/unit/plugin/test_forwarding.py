"""Hooks of the plugin as extensions: one for each plugin, in the order in which pytest calls them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pluggy
import pytest

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.plugin import newhooks
from pytest_captcha_qa.plugin.forwarding import HOOKS, hook_extensions
from pytest_captcha_qa.wiring.extensions import FUNCTIONS, Extension

ROOT = Path("/repo")
impl = pluggy.HookimplMarker("pytest")


@pytest.fixture
def extensions() -> Callable[..., list[Extension]]:
    """`extensions({name: plugin})` registers plugins, and returns what is made of them."""

    def make(plugins: dict[str, object]) -> list[Extension]:
        manager = pluggy.PluginManager("pytest")
        manager.add_hookspecs(newhooks)
        for name, plugin in plugins.items():
            manager.register(plugin, name)
        config: Any = SimpleNamespace(pluginmanager=manager, hook=manager.hook, rootpath=ROOT)
        return hook_extensions(config)

    return make


class Recording:
    """A plugin that has noted what it was told."""

    def __init__(self, given: object = None, file: str | None = None) -> None:
        self.given = given
        self.told: list[object] = []
        if file is not None:
            self.__file__ = file

    @impl
    def pytest_captcha_record(self, config, line):
        self.told.append(line)
        if isinstance(self.given, Exception):
            raise self.given
        return self.given


class Solving:
    """A plugin that knows one provider."""

    @impl
    def pytest_captcha_provider(self, name):
        return "the provider" if name == "inhouse" else None


class Around:
    """A plugin that only wraps what others do."""

    @impl(wrapper=True)
    def pytest_captcha_record(self):
        return (yield)


def test_every_function_of_an_extension_has_its_hook() -> None:
    assert set(HOOKS) == set(FUNCTIONS)
    assert set(HOOKS.values()) == {name for name in vars(newhooks) if name.startswith("pytest_")}


def test_the_last_that_was_registered_comes_first_and_a_conftest_has_its_path(extensions) -> None:
    plugins = {"lint": Recording(), "/repo/qa/conftest.py": Recording(file="/repo/qa/conftest.py"), "around": Around()}
    made = extensions(plugins)
    assert [(one.name, one.place) for one in made] == [
        ("qa/conftest.py", "/repo/qa/conftest.py"), ("lint", "lint")
    ]  # fmt: skip


def test_each_is_called_for_itself_though_another_raises(extensions) -> None:
    raising, good = Recording(LookupError("t3xt")), Recording({"squad": "a"})
    first, second = extensions({"good": good, "raising": raising})
    with pytest.raises(ConfigError, match="a hook of pytest: raising:pytest_captcha_record itself raised LookupError"):
        first.functions["record_fields"]({"slug": "login"})
    assert second.functions["record_fields"]({"slug": "login"}) == {"squad": "a"}
    assert raising.told == good.told == [{"slug": "login"}]


def test_what_a_hook_does_not_know_is_none(extensions) -> None:
    [silent] = extensions({"silent": Recording()})
    assert silent.functions["record_fields"]({}) is None
    [solving] = extensions({"solving": Solving()})
    assert [solving.functions["provider"](name, None) for name in ("inhouse", "other")] == ["the provider", None]
