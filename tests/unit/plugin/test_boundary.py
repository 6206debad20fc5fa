from __future__ import annotations

import sys
import traceback

import pytest

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.plugin import boundary

SECRET = "tok-0123456789"


def ours(error: Exception) -> None:
    token = SECRET
    assert token
    try:
        raise LookupError(SECRET)
    except LookupError:
        raise error  # noqa: B904 - the context is what the test is about


def locals_of(error: BaseException) -> list[dict[str, object]]:
    """Return the locals of every frame that a report with --showlocals would show, below this file's own."""
    found: list[dict[str, object]] = []
    seen: BaseException | None = error
    while seen is not None:
        frames = [frame for frame, _ in traceback.walk_tb(seen.__traceback__)]
        found += [dict(frame.f_locals) for frame in frames if frame.f_code is ours.__code__]
        seen = seen.__cause__ or seen.__context__
    return found


def test_what_a_function_returns_passes() -> None:
    assert boundary.call(max, 1, 3, key=lambda number: -number) == 1


def test_an_error_of_ours_crosses_alone() -> None:
    with pytest.raises(ConfigError, match="write it so") as crossed:
        boundary.call(ours, ConfigError("write it so"))
    assert crossed.value.__cause__ is None
    assert crossed.value.__context__ is None
    assert locals_of(crossed.value) == []
    assert SECRET not in "".join(traceback.format_exception(crossed.value))


def test_any_other_error_keeps_its_frames_but_not_their_locals() -> None:
    with pytest.raises(ZeroDivisionError) as crossed:
        boundary.call(ours, ZeroDivisionError("inside"))
    assert len(locals_of(crossed.value)) == 2, "the error and its context"
    assert all(SECRET not in values.values() for values in locals_of(crossed.value))


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit])
def test_an_interruption_goes_on(ending: type[BaseException]) -> None:
    def stop() -> None:
        token = SECRET
        raise ending(len(token))

    with pytest.raises(ending):
        boundary.call(stop)


def test_an_error_that_is_its_own_cause_does_not_loop() -> None:
    error = ValueError("round")
    other = ValueError("and round")
    error.__context__, other.__context__ = other, error

    def circle() -> None:
        raise error

    with pytest.raises(ValueError, match="round"):
        boundary.call(circle)
    assert sys.exc_info() == (None, None, None)
