"""The built-in suites, collected beside a team's own tests: `--captcha-suite`, `--captcha-probes`."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

_PACKAGE = Path("pytest_captcha_qa", "suites")
_FOLDER = Path(__file__).resolve().parents[1] / "suites"
_FOLDERS = {"suite": _FOLDER, "conformance": _FOLDER / "conformance"}


class SuiteHooks:
    """Adds the suite's modules to whatever a session collects, in xdist workers too; registered with the option.

    They are no argument of the session: pytest drops one that lies below another, and a virtual environment often lies
    below the folder that is collected, but is not looked into.
    """

    def __init__(self, parts: Sequence[str], *, with_environment: bool) -> None:
        """Keep which of the suites are wanted."""
        self._folders = [_FOLDERS[part] for part in parts]
        self._with_environment = with_environment

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Let the session find the suite after what it was asked for."""
        report = yield
        if isinstance(collector, pytest.Session) and report.passed:
            found = list(report.result or ())
            there = {node.path.resolve() for node in found}
            # No pattern of a team's finds the probes in a folder that was asked for.
            added = [folder for folder in self._folders if folder not in there or folder != _FOLDER]
            report.result = [*found, *(module for folder in added for module in _modules(collector, folder))]
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Take each test of the suite once, and those for types of which no form is configured not at all."""
        items[:] = _once(items)
        unused = [item for item in items if self._with_environment and is_unused(item)]
        if unused:
            config.hook.pytest_deselected(items=unused)
            items[:] = [item for item in items if item not in unused]


def module_name(path: Path) -> str | None:
    """Return the module of the built-in suites that a file is, None if it is none of them."""
    found = path.resolve()
    if not found.is_relative_to(_FOLDER):
        return None
    return ".".join((_PACKAGE / found.relative_to(_FOLDER).with_suffix("")).parts)


def named(path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Return the node of a module of the built-in suites that lies outside of the root folder, None for another file.

    pytest would name it by the folder or package that was asked for, and not find it again by that name.
    """
    if module_name(path) is None or path.is_relative_to(parent.config.rootpath):
        return None
    return _module(path, parent)


def _modules(session: pytest.Session, folder: Path) -> list[pytest.Module]:
    return [_module(path, session) for path in sorted(folder.glob("[!_]*.py"))]


def _module(path: Path, parent: pytest.Collector) -> pytest.Module:
    root = parent.config.rootpath
    within = path.relative_to(root) if path.is_relative_to(root) else _PACKAGE / path.resolve().relative_to(_FOLDER)
    return pytest.Module.from_parent(parent, path=path, nodeid=within.as_posix())


def _once(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the items without those of the suite that were collected as part of something else already."""
    found = {(item.path.resolve(), item.name) if _is_ours(item) else item: item for item in reversed(items)}
    return list(reversed(found.values()))


def _is_ours(item: pytest.Item) -> bool:
    return item.path.resolve().parent in _FOLDERS.values()


def is_unused(item: pytest.Item) -> bool:
    """Return whether a test of the suite is for types of which no form is configured."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    wants_a_form = "captcha_form_name" in getattr(item, "fixturenames", ())
    return wants_a_form and "captcha_form_name" not in parameters and _is_ours(item)
