"""The built-in suite, collected beside a team's own tests: `--captcha-suite`."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

_PACKAGE = Path("pytest_captcha_qa", "suites")
_FOLDER = Path(__file__).resolve().parents[1] / "suites"


class SuiteHooks:
    """Adds the suite's modules to whatever a session collects, in xdist workers too; registered with the option.

    They are no argument of the session: pytest drops one that lies below another, and a virtual environment often lies
    below the folder that is collected, but is not looked into.
    """

    def __init__(self, *, with_environment: bool) -> None:
        self._with_environment = with_environment

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Let the session find the suite after what it was asked for."""
        report = yield
        if isinstance(collector, pytest.Session) and report.passed:
            found = list(report.result or ())
            asked_for = any(node.path.resolve() == _FOLDER for node in found)
            report.result = found if asked_for else [*found, *_modules(collector)]
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Take each test of the suite once, and those for types of which no form is configured not at all."""
        items[:] = _once(items)
        unused = [item for item in items if self._with_environment and _is_unused(item)]
        if unused:
            config.hook.pytest_deselected(items=unused)
            items[:] = [item for item in items if item not in unused]


def _modules(session: pytest.Session) -> list[pytest.Module]:
    return [
        pytest.Module.from_parent(session, path=path, nodeid=_nodeid(path, session.config.rootpath))
        for path in sorted(_FOLDER.glob("test_*.py"))
    ]


def _nodeid(path: Path, root: Path) -> str:
    inside = path.is_relative_to(root)
    return (path.relative_to(root) if inside else _PACKAGE / path.name).as_posix()


def _once(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the items without those of the suite that were collected as part of something else already."""
    found = {(item.path.resolve(), item.name) if _is_ours(item) else item: item for item in reversed(items)}
    return list(reversed(found.values()))


def _is_ours(item: pytest.Item) -> bool:
    return item.path.resolve().parent == _FOLDER


def _is_unused(item: pytest.Item) -> bool:
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    wants_a_form = "captcha_form_name" in getattr(item, "fixturenames", ())
    return wants_a_form and "captcha_form_name" not in parameters and _is_ours(item)
