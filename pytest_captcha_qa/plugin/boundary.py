"""The border between our code and a test: what crosses it shows no secret."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from pytest_captcha_qa.errors import CaptchaQAError

_P = ParamSpec("_P")
_R = TypeVar("_R")


def call(function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Return what the function returns; an exception loses the locals of our frames before it goes on.

    `--showlocals` prints the locals of every frame of a traceback, and ours hold keys and tokens. Our own errors say
    all there is to say in their sentence, so they cross without our frames.
    """
    __tracebackhide__ = True
    try:
        return function(*args, **kwargs)
    except CaptchaQAError as error:
        _forget(error)
        error.__cause__ = error.__context__ = None
        raise error.with_traceback(None)  # noqa: B904 - the cause was cut on purpose
    except BaseException as error:
        _forget(error)
        raise


def _forget(error: BaseException | None) -> None:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            traceback.clear_frames(error.__traceback__.tb_next)
        error = error.__cause__ or error.__context__
