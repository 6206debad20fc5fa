"""Extensions: how they are found, what of their fields is recorded, and what becomes of their errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.engine.events import Event
from pytest_captcha_qa.errors import ConfigError, ScopeDenied, Stopped
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.model.redact import Scrubber
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.testing import form
from pytest_captcha_qa.wiring.extensions import Extension, Listeners, SeenForm, SeenPage, unusable_extensions

SECRET = "s3cretOf32charactersABCDEFGHIJKL"
DIGITS = "48151623"
PAGE = Url.parse("http://127.0.0.1:9/signup?session=7")


class Told:
    """Listeners with their events, whose scrubber knows the two secrets."""

    def __init__(self, *functions: Mapping[str, Callable[..., object]], cleaned: bool = True) -> None:
        self.events: list[Event] = []
        scrubber = Scrubber()
        scrubber.learn([SECRET, DIGITS])
        made = [Extension.of("here", f"qa.e{n}", "", given) for n, given in enumerate(functions)]
        self.listeners = Listeners(made, self.events.append, scrubber.clean if cleaned else None)

    @property
    def said(self) -> list[tuple[str, ...]]:
        return [(event.name, *map(str, event.data.values())) for event in self.events]


def giving(*given: object) -> Told:
    """Return listeners whose extensions give these, one each."""

    def record_fields(value: object) -> Mapping[str, Callable[..., object]]:
        return {"record_fields": lambda line: value}

    return Told(*map(record_fields, given))


# How they are found.


def test_an_extension_is_found_beside_the_configuration(module: Callable[[str], str], tmp_path: Path) -> None:
    name = module("def record_fields(line): ...\ndef helper(): ...\nprovider = None")
    found = Extension.load(name, tmp_path)
    assert (found.name, found.place, list(found.functions)) == (name, str(tmp_path / f"{name}.py"), ["record_fields"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import not_there_at_all", r"extensions: flows_\d+ cannot be imported: there is no module not_there_at_all"),
        ("from os import not_there", "cannot be imported: an import fails in it"),
        ("\nraise KeyError('s3cret')", r"its module raised KeyError at flows_\d+.py:2"),
        ("record_fields = 7", r"extensions: flows_\d+:record_fields is no function but a int"),
        ("def record_field(line): ...", r"would do nothing: it defines none of .*provider; it has record_field$"),
        ("", "it has no function$"),
    ],
    ids=["no module", "no name", "error", "no function", "misspelt", "empty"],
)
def test_what_cannot_be_used_is_told(
    module: Callable[[str], str], environment: Callable[..., EnvironmentConfig], text: str, words: str
) -> None:
    written = environment(first=f'extensions = ["{module(text)}"]')
    [said] = unusable_extensions(written)
    assert "s3cret" not in said
    with pytest.raises(ConfigError, match=words) as caught:
        Extension.load(written.extensions[0], written.folder)
    assert caught.value.message == said


def test_a_provider_that_nobody_can_make_is_told_before_the_run(
    module: Callable[[str], str], environment: Callable[..., EnvironmentConfig]
) -> None:
    written = environment(first=f'extensions = ["{module("def form_opened(form, page): ...")}"]')
    written = replace(written, account=replace(written.account, provider="captchai"))
    hook = Extension.of("a hook of pytest", "conftest.py", "", {"provider": lambda name, settings: None})
    [said] = unusable_extensions(written)
    assert said.startswith("accounts.local.provider: nobody knows 'captchai': no extension and no hook makes any")
    assert said.endswith("; did you mean 'captchaai'?")
    assert unusable_extensions(written, [hook]) == []


# What they are told, and what of their answers is recorded.


def test_a_listener_hears_what_was_opened_and_no_query() -> None:
    heard: list[object] = []
    told = Told({"form_opened": lambda *seen: heard.extend(seen)}, {"record_fields": lambda line: None})
    told.listeners.opened(form("signup"), PAGE)
    assert heard == [SeenForm("signup", "recaptcha_v2"), SeenPage("http://127.0.0.1:9/signup")]
    assert told.events == []


def test_each_gets_a_line_of_its_own_in_the_shape_of_the_records(attempt: Callable[..., AttemptLine]) -> None:
    def spoil(line: dict[str, Any]) -> object:
        given = {"type": line["type"], "pages": line["seconds"].pop("page")}
        line.clear()
        return given

    told = Told({"record_fields": spoil}, {"record_fields": lambda line: {"also": line["seconds"]["page"]}})
    line = attempt(seconds={"page": 0.5})
    assert told.listeners.extra(line) == {"type": "turnstile", "pages": 0.5, "also": 0.5}
    assert line.seconds == {"page": 0.5}


@pytest.mark.parametrize(
    ("given", "kept", "field", "why"),
    [
        ({"a b": 1, "ok": 2}, {"ok": 2}, None, "its name is no identifier"),
        ({"listed": [1], "ok": 2}, {"ok": 2}, "listed", "its value is no text"),
        ({"long": "x" * 201}, {}, "long", "its text has more than 200 characters"),
        ([("a", 1)], {}, None, "what was returned is no mapping"),
        ({f"f{n}": n for n in range(21)}, {f"f{n}": n for n in range(20)}, "f20", "there are more than 20 fields"),
        ({"key": f"is {SECRET}!"}, {"key": "is ***!"}, "key", "it held a secret, which is masked"),
        ({"part": SECRET[5:21]}, {"part": "***"}, "part", "it held a secret, which is masked"),
        ({"number": int(DIGITS)}, {}, "number", "it held a secret, which is masked"),
        ({SECRET: 1}, {}, "***", "its name holds a secret"),
    ],
)  # fmt: skip
def test_what_is_not_recorded_as_it_was_given_is_told_once(
    attempt: Callable[..., AttemptLine], given: object, kept: object, field: str | None, why: str
) -> None:
    told = giving(given)
    assert told.listeners.extra(attempt()) == told.listeners.extra(attempt()) == kept
    [event] = told.events
    assert (event.name, event.data["module"], event.data["field"]) == ("extension_refused", "qa.e0", field)
    assert str(event.data["why"]).startswith(why)


def test_the_first_to_give_a_name_keeps_it(attempt: Callable[..., AttemptLine]) -> None:
    told = giving({"squad": "a"}, {"squad": "b", "more": 1})
    assert told.listeners.extra(attempt()) == {"squad": "a", "more": 1}
    assert told.said == [("extension_refused", "qa.e1", "squad", "an extension before it gave a field of this name")]


def test_without_a_scrubber_nothing_is_recorded(attempt: Callable[..., AttemptLine]) -> None:
    told = Told({"record_fields": lambda line: {"squad": "a"}}, cleaned=False)
    assert told.listeners.extra(attempt()) == {}


# Their errors.


def raising(error: BaseException) -> Callable[..., object]:
    def function(*told: object) -> object:
        raise error

    return function


class LazyMapping(dict[str, object]):
    def items(self) -> Any:
        yield "a", 1
        raise LookupError(SECRET)


class Changeling:
    @property
    def __class__(self) -> Any:
        raise RuntimeError(SECRET)


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (raising(KeyError(SECRET)), "KeyError"),
        (raising(AssertionError(SECRET)), "AssertionError"),
        (raising(ScopeDenied(SECRET)), "ScopeDenied"),
        (raising(Stopped(SECRET)), "Stopped"),
        (raising(type(SECRET, (Exception,), {})()), "***"),
        (lambda line: LazyMapping(), "LookupError"),
        (lambda line: {"value": Changeling()}, "RuntimeError"),
        (lambda: None, "TypeError"),
    ],
    ids=["error", "assertion", "ours", "stop", "named", "lazy", "changeling", "arguments"],
)
def test_an_error_is_an_event_and_takes_nothing_from_the_others(
    attempt: Callable[..., AttemptLine], function: Callable[..., object], kind: str
) -> None:
    told = Told({"record_fields": function, "form_opened": function}, {"record_fields": lambda line: {"ok": 1}})
    assert told.listeners.extra(attempt()) == {"ok": 1}
    told.listeners.extra(attempt())
    assert told.said == [("extension_failed", "qa.e0", "record_fields", kind)] * 2


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt(), SystemExit(3)])
def test_an_interrupt_goes_on(attempt: Callable[..., AttemptLine], interrupt: BaseException) -> None:
    told = Told({"record_fields": raising(interrupt), "form_opened": raising(interrupt)})
    with pytest.raises(type(interrupt)):
        told.listeners.extra(attempt())
    with pytest.raises(type(interrupt)):
        told.listeners.opened(form(), PAGE)
    assert told.events == []
