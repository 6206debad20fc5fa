"""Holds the architecture where a tool can: who imports whom, and that tables by type are complete."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest_captcha_qa
from pytest_captcha_qa.model.captcha import CaptchaType

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pytest_captcha_qa"
NAME = PACKAGE.name

# Folders and modules that stand on the standard library and on each other.
PURE = ("errors.py", "model", "scope.py", "engine")


def _sources(*places: str) -> Iterator[Path]:
    for place in places:
        path = PACKAGE / place
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def _imports(source: Path) -> Iterator[tuple[int, str]]:
    """Yield line and top-level name of all that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, NAME if node.level else str(node.module).partition(".")[0]


def _found(sources: Iterator[Path], wanted: Collection[str] | None, allowed: Collection[str] = ()) -> list[str]:
    """Return where something is imported that is wanted, or (None) anything that is not allowed."""
    return [
        f"{source.relative_to(ROOT)}:{line} imports {name}"
        for source in sources
        for line, name in _imports(source)
        if (name in wanted if wanted is not None else name not in allowed)
    ]


def test_the_import_contracts_are_kept() -> None:
    # In a process of its own: the tool sets up logging anew and switches off all loggers that exist.
    tool = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    ran = subprocess.run([sys.executable, "-c", tool], cwd=ROOT, capture_output=True, text=True, timeout=120)

    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_top_level_name_has_its_place_in_the_layers() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    layers = text[text.index("layers = [") : text.index("]", text.index("layers = ["))]
    names = {module.name for module in pkgutil.iter_modules([str(PACKAGE)])}

    assert sorted(name for name in names if name not in layers) == []


def test_model_scope_and_engine_import_the_standard_library_only() -> None:
    assert _found(_sources(*PURE), None, allowed=sys.stdlib_module_names | {NAME}) == []


def test_only_transport_imports_the_http_libraries() -> None:
    others = (source for source in _sources(".") if "transport" not in source.parts)

    assert _found(others, {"requests", "urllib3"}) == []


def test_only_the_plugin_and_the_suites_import_pytest() -> None:
    others = (source for source in _sources(".") if not {"plugin", "suites"} & set(source.parts))

    assert _found(others, {"pytest", "_pytest"}) == []


def test_importing_the_package_imports_nothing_heavy() -> None:
    assert pytest_captcha_qa.__version__
    assert _found(_sources("__init__.py"), None, allowed=sys.stdlib_module_names) == []


# Tables by type: an entry or an explicit None for each.

_KNOWN = ("model.captcha.FACTS", "forms.widgets.WIDGETS", "verify.vendors.VENDORS")
_EXTRAS = {"redis", "rq", "confluent_kafka", "starlette", "uvicorn", "duckdb", "scipy", "altair", "allure_commons"} | {
    "allure_pytest",
    "prometheus_client",
}


def _modules() -> Iterator[ModuleType]:
    for module in pkgutil.walk_packages([str(PACKAGE)], f"{NAME}."):
        try:
            yield importlib.import_module(module.name)
        except ModuleNotFoundError as missing:
            if missing.name is None or missing.name.partition(".")[0] not in _EXTRAS:
                raise


def _tables() -> dict[str, Mapping[CaptchaType, object]]:
    """Return all that the package keys by captcha type at the top of a module, and the methods of dialects."""
    tables: dict[str, Mapping[CaptchaType, object]] = {
        f"{module.__name__.removeprefix(NAME)[1:]}.{name}": value
        for module in _modules()
        for name, value in vars(module).items()
        if isinstance(value, Mapping) and value and all(isinstance(key, CaptchaType) for key in value)
    }
    dialects = importlib.import_module(f"{NAME}.provider.dialects").DIALECTS
    return tables | {f"provider.dialects of {name}": dialect.methods for name, dialect in dialects.items()}


def test_every_table_by_type_has_an_entry_or_an_explicit_none_for_each_type() -> None:
    tables = _tables()

    assert set(_KNOWN) <= set(tables)
    assert any(name.startswith("provider.dialects of") for name in tables)
    assert {name: missing for name, table in tables.items() if (missing := set(CaptchaType) - set(table))} == {}


def test_what_is_true_of_some_types_stands_in_a_table_and_in_no_set_beside_it() -> None:
    sets = [
        f"{source.relative_to(ROOT)}:{node.lineno}"
        for source in _sources(".")
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, (ast.Set, ast.List, ast.Tuple)) and node.elts and all(map(_names_a_type, node.elts))
    ]

    assert sets == []


def test_no_code_branches_on_a_single_captcha_type() -> None:
    branches = [
        f"{source.relative_to(ROOT)}:{node.lineno}"
        for source in _sources(".")
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, (ast.Compare, ast.MatchValue)) and _asks_for_a_type(node)
    ]

    assert branches == []


def _asks_for_a_type(node: ast.Compare | ast.MatchValue) -> bool:
    """Return whether a value is compared with a type, or looked for among some; a type among values is not."""
    if isinstance(node, ast.MatchValue):
        return _names_a_type(node.value)
    equal = any(isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)) for op in node.ops)
    return any(_names_a_type(part) for part in ([node.left, *node.comparators] if equal else node.comparators))


def _names_a_type(part: ast.expr) -> bool:
    return any(
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "CaptchaType"
        for node in ast.walk(part)
    )
