"""What becomes of a call where the system gives no further thread."""

from __future__ import annotations

import threading

import pytest

from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import TransportError
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.transport import HttpClient, connections
from pytest_captcha_qa.transport.threads import ThreadsExhausted
from pytest_captcha_qa.transport.watchdog import Watchdog

PAGE = Url.parse("https://shop.example/signup?session=hidden")


def _no_thread(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let the system refuse threads of this name, as it does where a limit is reached."""
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == name:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)


@pytest.mark.parametrize("name", ["captcha-qa-resolver", "captcha-qa-watchdog"])
def test_a_machine_without_threads_is_a_transport_error_and_nothing_was_sent(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(connections, "WATCHDOG", Watchdog())
    _no_thread(monkeypatch, name)

    with pytest.raises(TransportError, match="out of threads") as failure:
        HttpClient().request("GET", PAGE, deadline=Deadline(5, what="the test"), grant=None)

    assert (failure.value.kind, failure.value.sent) == ("resources", False)
    assert failure.value.__context__ is None


def test_a_watchdog_that_got_no_thread_watches_as_soon_as_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    dog = Watchdog()
    with monkeypatch.context() as short:
        _no_thread(short, "captcha-qa-watchdog")
        with pytest.raises(ThreadsExhausted):
            dog.watch(0.0)

    fired = threading.Event()
    with dog.watch(0.0) as watch:
        monkeypatch.setattr(watch, "fire", fired.set)
        dog.add(watch)

        assert fired.wait(5)
