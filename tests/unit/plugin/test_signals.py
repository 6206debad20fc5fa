from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from pytest_captcha_qa.plugin import signals
from pytest_captcha_qa.plugin.signals import Sigterm


@pytest.fixture
def sigterm() -> Iterator[Sigterm]:
    """The handling of a session, in a process that has none of its own."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    made = Sigterm()
    yield made
    made.is_itself()
    signal.signal(signal.SIGTERM, before)


def _waiting() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "captcha-qa end"]


def test_it_interrupts_the_tests(sigterm: Sigterm) -> None:
    sigterm.interrupts()
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        signal.raise_signal(signal.SIGTERM)


def test_it_lets_a_session_end_by_itself_however_often_it_comes(sigterm: Sigterm) -> None:
    sigterm.interrupts()
    sigterm.waits()
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)
    [waiting] = _waiting()

    sigterm.is_itself()

    waiting.join(10)
    assert not waiting.is_alive()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_session_that_does_not_end_is_ended(sigterm: Sigterm, monkeypatch: pytest.MonkeyPatch) -> None:
    codes, ended = list[int](), threading.Event()

    def end(code: int) -> None:
        codes.append(code)
        ended.set()

    monkeypatch.setattr(signals, "_PATIENCE", 0.0)
    monkeypatch.setattr(os, "_exit", end)
    sigterm.interrupts()
    sigterm.waits()
    signal.raise_signal(signal.SIGTERM)

    assert ended.wait(10)
    assert codes == [143]


def test_who_handles_it_already_goes_on_doing_so(sigterm: Sigterm) -> None:
    got = list[int]()

    def theirs(number: int, frame: object) -> None:
        got.append(number)

    signal.signal(signal.SIGTERM, theirs)
    for change in (sigterm.interrupts, sigterm.waits, sigterm.is_itself):
        change()
        signal.raise_signal(signal.SIGTERM)

    assert got == [signal.SIGTERM] * 3


def test_a_session_in_another_thread_changes_nothing(sigterm: Sigterm) -> None:
    thread = threading.Thread(target=sigterm.interrupts)
    thread.start()
    thread.join()

    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_what_was_not_begun_is_not_waited_for(sigterm: Sigterm) -> None:
    sigterm.waits()

    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert not _waiting()
