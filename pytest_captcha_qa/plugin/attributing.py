"""Whether a test failed of one of its attempts, or of something of its own beside them.

An outcome is a value that a test may look at or not, so that a test whose attempt went wrong may fail of another thing
altogether. What tells is the statement that failed: it speaks of the outcome, of something made from it, or calls what
makes outcomes. A test that hides this too well is held to have failed by itself, which no waiver excuses.
"""

from __future__ import annotations

import ast
import functools
import linecache
import sysconfig
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from itertools import islice
from pathlib import Path
from traceback import walk_tb
from types import FrameType, FunctionType
from typing import Any

from pytest_captcha_qa.model.attempt import Outcome, Verdict
from pytest_captcha_qa.plugin.case import FormPage
from pytest_captcha_qa.plugin.fixtures import Crossing

_OURS = Path(__file__).resolve().parents[1]
_NOT_THE_TEAMS = (_OURS, *(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib")))
_MOST_IN_A_COLLECTION = 1000
_SOURCES = (Crossing, FormPage)
_VALUES = (*_SOURCES, Outcome, Verdict)
_LEFT_OUT = (ast.stmt, ast.ExceptHandler, ast.match_case)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)


class About(Enum):
    """What the failure of a test is about."""

    AN_ATTEMPT = "an attempt"
    ITSELF = "itself"
    NOT_TOLD = "not told"


def about(error: BaseException | None, outcomes: Collection[Outcome], test_file: Path | None) -> About:
    """Return what a failure is about; `outcomes` are those of the test that failed.

    Where no line of the test shows in the traceback, as with plugins that collect failures, it is not told.
    """
    places = [place for one in _chain(error) for place in _places(one, test_file)]
    if not places:
        return About.NOT_TOLD
    return About.AN_ATTEMPT if any(_Place(*place, outcomes).speaks() for place in places) else About.ITSELF


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        if isinstance(error, BaseExceptionGroup):
            for one in error.exceptions:
                yield from _chain(one)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _places(error: BaseException, test_file: Path | None) -> Iterator[tuple[FrameType, int]]:
    """Yield the frames of the team's own code and their lines."""
    for frame, line in walk_tb(error.__traceback__):
        file = Path(frame.f_code.co_filename).resolve()
        foreign = any(map(file.is_relative_to, _NOT_THE_TEAMS))
        if not foreign or (test_file is not None and file == test_file.resolve()):
            yield frame, line


class _Place:
    """One line of one frame of a traceback."""

    def __init__(self, frame: FrameType, line: int, outcomes: Collection[Outcome]) -> None:
        self._names: Mapping[str, Any] = {**frame.f_globals, **frame.f_locals}
        self._locals = frame.f_locals
        self._failed = {id(part) for outcome in outcomes for part in (outcome, outcome.verdict)}
        self._path = _path_to(_parsed(frame.f_code.co_filename), line)
        self._derived: frozenset[str] = frozenset()

    def speaks(self) -> bool:
        """Return whether the statement, or a condition it stands under, is about one of the failed outcomes."""
        if not self._path:
            return any(map(self._failing, self._locals.values()))
        inside = max((at for at, node in enumerate(self._path) if isinstance(node, _FUNCTIONS)), default=0)
        self._derive(self._path[inside])
        conditions = [node.test for node in self._path[inside:-1] if isinstance(node, ast.If | ast.While)]
        return any(map(self._is_about, [*_own_parts(self._path[-1]), *conditions]))

    def _derive(self, function: ast.AST) -> None:
        """Learn which names of the function were made from a failed outcome, however often removed."""
        made = [one for node in ast.walk(function) for one in _assignments(node)]
        while True:
            found = frozenset(name for name, value in made if self._is_about(value))
            if found <= self._derived:
                return
            self._derived |= found

    def _is_about(self, expression: ast.AST) -> bool:
        return any(self._says(node) for node in ast.walk(expression))

    def _says(self, node: ast.AST) -> bool:
        match node:
            case ast.Name(id=name):
                value = self._names.get(name)
                derived = name in self._derived and not isinstance(value, _VALUES)
                return derived or self._failing(value)
            case ast.Attribute():
                return self._failing(self._value(node))
            case ast.Call(func=function, args=args, keywords=keywords):
                return self._calls_ours(function) or any(
                    isinstance(self._value(given), _SOURCES) for given in (*args, *(word.value for word in keywords))
                )
        return False

    def _calls_ours(self, function: ast.AST) -> bool:
        owner = self._value(function.value) if isinstance(function, ast.Attribute) else None
        called = (owner, self._value(function)) if not isinstance(owner, Outcome | Verdict) else ()
        return any(isinstance(part, _SOURCES) for value in called for part in _parts(value))

    def _value(self, node: ast.AST) -> Any:
        """Return what a name, or an attribute of one, stands for, without running any code; None if unknown."""
        match node:
            case ast.Name(id=name):
                return self._names.get(name)
            case ast.Attribute(value=owner, attr=name):
                return getattr(self._value(owner), "__dict__", {}).get(name)
        return None

    def _failing(self, value: Any) -> bool:
        return any(id(one) in self._failed for one in (value, *_members(value)))


def _members(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return islice(value.values(), _MOST_IN_A_COLLECTION)
    return islice(value, _MOST_IN_A_COLLECTION) if isinstance(value, list | tuple | set | frozenset) else ()


def _parts(value: Any) -> Iterator[Any]:
    """Yield a value and what it holds one step further: a helper of the test's that wraps a fixture of ours."""
    yield value
    yield getattr(value, "__self__", None)
    if isinstance(value, functools.partial):
        yield from (value.func, *value.args)
    if isinstance(value, FunctionType):
        yield from (cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell))
    elif not isinstance(value, type):
        yield from getattr(value, "__dict__", {}).values()


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


@functools.lru_cache(maxsize=32)
def _parsed(filename: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):
        return None


def _path_to(tree: ast.Module | None, line: int) -> list[ast.AST]:
    """Return the nodes that hold a line, from the module to the innermost statement; empty if nothing does."""
    path: list[ast.AST] = []
    inner: ast.AST | None = tree
    while inner is not None:
        path.append(inner)
        inner = next((child for child in _blocks(inner) if _holds_line(child, line)), None)
    return path if len(path) > 1 else []


def _blocks(node: ast.AST) -> list[ast.AST]:
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, _LEFT_OUT)]


def _holds_line(node: ast.AST, line: int) -> bool:
    if isinstance(node, ast.match_case):
        return any(_holds_line(child, line) for child in node.body)
    return bool(getattr(node, "lineno", 0) <= line <= (getattr(node, "end_lineno", None) or 0))


def _own_parts(statement: ast.AST) -> list[ast.AST]:
    """Return the expressions of a statement without those of the statements inside it."""
    return [child for child in ast.iter_child_nodes(statement) if not isinstance(child, _LEFT_OUT)]


def _assignments(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield each name that the node gives a value, with the expression the value comes from."""
    targets: list[ast.AST] = []
    value: ast.AST | None = None
    match node:
        case ast.Assign():
            targets, value = list(node.targets), node.value
        case ast.AnnAssign() | ast.AugAssign() | ast.NamedExpr():
            targets, value = [node.target], node.value
        case ast.For() | ast.AsyncFor() | ast.comprehension():
            targets, value = [node.target], node.iter
        case ast.withitem(optional_vars=ast.AST() as given):
            targets, value = [given], node.context_expr
    if value is not None:
        yield from ((name.id, value) for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))
