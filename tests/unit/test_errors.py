from __future__ import annotations

import re

import pytest

from pytest_captcha_qa import errors
from pytest_captcha_qa.errors import CaptchaQAError, ScopeDenied, TransportError, UnknownName, all_errors
from pytest_captcha_qa.model.attempt import Fault

CLASSES = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, CaptchaQAError)]
EXIT_CODES = {1, 2, 4, 11, 12, 13, 14, 15, 16}

# Names and parents as the module's docstring draws them; two levels of branches are enough.
_LINE = re.compile(r"^(?P<branch>[│├└─ ]*)(?P<name>[A-Z]\w+) +(?P<text>.*)$", re.MULTILINE)


def _drawn() -> dict[str, tuple[int, str]]:
    assert errors.__doc__ is not None
    return {line["name"]: (len(line["branch"]) // 4, line["text"]) for line in _LINE.finditer(errors.__doc__)}


def _make(cls: type[CaptchaQAError]) -> CaptchaQAError:
    return cls("what happened", kind="reset") if cls is TransportError else cls("what happened")


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_says_what_it_is_whose_fault_and_how_to_exit(cls: type[CaptchaQAError]) -> None:
    assert re.fullmatch("[a-z]+(_[a-z]+)*", cls.code)
    assert isinstance(cls.retryable, bool)
    assert cls.exit_code in EXIT_CODES
    assert cls.fault in set(Fault)
    assert cls.__doc__


def test_every_code_belongs_to_one_error() -> None:
    assert len({cls.code for cls in CLASSES}) == len(CLASSES)
    assert {error.__name__ for error in all_errors().values()} >= {cls.__name__ for cls in CLASSES}
    assert all(cls.code == code for code, cls in all_errors().items())


@pytest.mark.parametrize("cls", CLASSES[1:], ids=lambda cls: cls.__name__)
def test_the_docstring_draws_every_error_at_its_place(cls: type[CaptchaQAError]) -> None:
    depth = len(cls.__mro__) - len(CaptchaQAError.__mro__)

    assert _drawn()[cls.__name__][0] == depth


def test_the_docstring_draws_nothing_else_and_the_right_exit_codes() -> None:
    known = {cls.__name__: cls for cls in CLASSES}
    for name, (_, text) in _drawn().items():
        told = re.search(r"\(exit (\d+)\)", text)
        if told:
            assert known[name].exit_code == int(told[1]), name


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_keeps_its_sentence(cls: type[CaptchaQAError]) -> None:
    error = _make(cls)

    assert str(error) == error.message == "what happened"
    assert (error.task_id, error.retry_after) == (None, None)


def test_a_faults_exit_code_is_the_same_for_all_errors_of_scope() -> None:
    assert [cls for cls in CLASSES if cls.exit_code == 15] == [ScopeDenied]
    assert [cls for cls in CLASSES if cls.fault == Fault.SCOPE] == [ScopeDenied]


def test_a_refusal_of_the_scope_keeps_its_reason() -> None:
    assert ScopeDenied("no", reason="proof_expired").reason == "proof_expired"


@pytest.mark.parametrize(
    ("name", "known", "said"),
    [
        ("sing-up", ["signup", "login"], "unknown form 'sing-up'; did you mean 'signup'?"),
        ("SIGNUP", ["signup"], "unknown form 'SIGNUP'; did you mean 'signup'?"),
        ("zzz", ["b", "a"], "unknown form 'zzz'; known: a, b"),
        ("zzz", [], "unknown form 'zzz'; none is defined"),
    ],
)
def test_an_unknown_name_offers_the_nearest_that_exists(name: str, known: list[str], said: str) -> None:
    assert str(UnknownName.among("form", name, known)) == said


def test_an_unknown_name_tells_where_it_stands() -> None:
    assert "'x' in environment 'qa';" in str(UnknownName.among("form", "x", ["y"], where="environment 'qa'"))
