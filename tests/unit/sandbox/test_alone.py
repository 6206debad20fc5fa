from __future__ import annotations

from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from pytest_captcha_qa.cli.main import main
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.sandbox import alone
from pytest_captcha_qa.sandbox.alone import KEY_VARIABLE, Listening
from pytest_captcha_qa.sandbox.hosting import guarded

KEY = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        (Listening("10.0.0.5"), "needs an admin key of 128 random bits in CAPTCHA_QA_STANDIN_KEY"),
        (Listening("10.0.0.5", key="ab" * 15 + "cdef0123"[:1]), "128 random bits"),
        (Listening("10.0.0.5", key="a" * 64), "128 random bits"),
        (Listening("10.0.0.5", key="short-and-not-hex!"), "128 random bits"),
        (Listening("0.0.0.0", key=KEY), "name with --host what backends call it"),
        (Listening("::", key=KEY), "name with --host what backends call it"),
        (Listening(names=("https://standin.example",)), "is no name of a host; write it without scheme and port"),
        (Listening(names=("*.example",)), "is no name of a host"),
        (Listening("standin.example", key=KEY), "is no address; names are given with --host"),
    ],
)
def test_others_than_this_machine_need_tls_a_name_and_a_key(place: Listening, reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        alone.serve(listening=place)
    assert reason in refused.value.message
    assert not place.key or place.key not in refused.value.message


@pytest.mark.parametrize(
    ("place", "url_host", "known"),
    [
        (Listening(), "127.0.0.1", set()),
        (Listening(names=("www.google.com",)), "127.0.0.1", {"www.google.com"}),
        (Listening("10.0.0.5", key=KEY), "10.0.0.5", {"10.0.0.5"}),
        (Listening("0.0.0.0", ("Standin.example",), KEY), "Standin.example", {"standin.example", "0.0.0.0"}),
        (Listening("2001:db8::1", key="Zm9vYmFyYmF6cXV1eGNvcmdl"), "[2001:db8::1]", {"2001:db8::1"}),
    ],
)
def test_it_answers_to_the_names_it_was_started_with(place: Listening, url_host: str, known: set[str]) -> None:
    place.check()
    assert (place.url_host, place.known) == (url_host, known)


@pytest.mark.parametrize(
    ("host", "status"), [("127.0.0.1:1", 200), ("Standin.example:1", 200), ("evil.example", 421), ("a@b", 421)]
)
def test_any_other_host_is_refused(make_client: Any, host: str, status: int) -> None:
    place = Listening("10.0.0.5", ("standin.example",), KEY)
    assert make_client(guarded(PlainTextResponse("in"), names=place.known), host=host).get("/").status == status


def test_the_command_line_says_what_is_wrong_and_exits_4(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "too-short")
    assert (main(["standin", "--listen", "10.0.0.5"]), main(["standin", "--port", "65535"])) == (4, 4)
    captured = capsys.readouterr()
    assert "secrets.token_hex(16)" in captured.err
    assert "1 to 65534" in captured.err
    assert "too-short" not in captured.out + captured.err


def test_the_program_says_what_is_wrong_and_exits_4(capsys: pytest.CaptureFixture[str]) -> None:
    assert alone.main(["--port", "70000"]) == 4
    assert "70000" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "said"),
    [({}, "fingerprint: none."), ({"aa": 1, "bb": 2}, "fingerprint: bb, aa."), (None, "fingerprint: none.")],
)
def test_who_still_asks_is_named_the_busiest_first(asked: dict[str, int] | None, said: str) -> None:
    warning = alone.still_in_use({"calls": 3, "last_call_ago": 1.0, "secrets": asked})
    assert said in warning
    assert "3 calls, the last 1.0 s ago" in warning


def test_of_many_who_still_ask_a_few_are_named() -> None:
    warning = alone.still_in_use({"calls": 90, "last_call_ago": 1.0, "secrets": {f"s{n:02}": n for n in range(45)}})
    assert "fingerprint: s44, s43, s42 and 42 more." in warning
