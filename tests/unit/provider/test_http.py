from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from pytest_captcha_qa.engine.ports import PollTimes, Provider, ThreadsInfo
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import (
    BalanceExhausted,
    CaptchaQAError,
    ConfigError,
    KeyRejected,
    MissingSecret,
    ProviderBusy,
    ProviderError,
    ProviderUnavailable,
    RequestRejected,
    ScopeDenied,
    TaskUnknown,
    TransportError,
    Unsolvable,
)
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge, EnvKind
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider.dialects import CAPTCHAAI, CODES, ERRORS, POLL_ERRORS, SANDBOX, Dialect
from pytest_captcha_qa.provider.http import HttpProvider
from pytest_captcha_qa.scope import (
    Evidence,
    OriginPattern,
    ScopeGrant,
    ScopeRules,
    TokenSource,
    check,
    fake_grant,
)
from pytest_captcha_qa.transport import ANSWER_LIMIT, NO_PAYLOAD, HttpClient, Payload, Reply

KEY = "k" * 32
SANDBOX_URL = Url.parse("http://127.0.0.1:9000")
LOCAL_PAGE = Url.parse("http://127.0.0.1:8000/signup?session=hidden")
OTHER_LOCAL_PAGE = Url.parse("http://127.0.0.1:8001/signup")
PUBLIC_PAGE = Url.parse("https://shop.example/signup?session=hidden")
RECAPTCHA = "03AFcWeAc4ptchaqaSANDBOXrest"


class ScriptedClient(HttpClient):
    """Answers each request with the next of its replies and remembers what was asked."""

    def __init__(self, *replies: Reply | CaptchaQAError | str | dict[str, object]) -> None:
        super().__init__()
        self.sent: list[tuple[str, str, dict[str, str]]] = []
        self._replies = list(replies)

    def request(self, method: str, url: Url, *, payload: Payload = NO_PAYLOAD, **options: Any) -> Reply:
        assert options["grant"] is None
        assert options["limit"] == ANSWER_LIMIT
        self.sent.append((method, str(url), dict(parse_qsl((payload.body or b"").decode(), strict_parsing=True))))
        reply = self._replies.pop(0)
        if isinstance(reply, CaptchaQAError):
            raise reply
        return reply if isinstance(reply, Reply) else _reply(reply)


def _reply(body: str | dict[str, object], status: int = 200, **headers: str) -> Reply:
    text = body if isinstance(body, str) else json.dumps(body)
    return Reply(status, SANDBOX_URL, CaseInsensitiveDict(headers), text.encode())


def _ok(value: object) -> dict[str, object]:
    return {"status": 1, "request": value}


def _error(code: str) -> dict[str, object]:
    return {"status": 0, "request": code}


def _deadline() -> Deadline:
    return Deadline(30, what="the test")


def _grant(page: Url, source: TokenSource) -> ScopeGrant:
    pattern = OriginPattern(page.origin)
    rules = ScopeRules("qa", EnvKind.QA, (pattern,), source)
    proof = Evidence(page.origin, 0.0, (pattern,), EnvKind.QA, 1000.0)
    granted = check(page, rules, proof, monotonic=lambda: 0.0, utc=lambda: 0.0)
    assert isinstance(granted, ScopeGrant)
    return granted


def _challenge(kind: CaptchaType = CaptchaType.RECAPTCHA_V2, page: Url = LOCAL_PAGE, **more: Any) -> Challenge:
    return Challenge(kind, "site-key", page, **more)


def _sandbox(client: HttpClient, *, time_scale: float = 1.0) -> HttpProvider:
    return HttpProvider(SANDBOX, key=KEY, client=client, base_url=SANDBOX_URL, time_scale=time_scale)


def _submit(client: ScriptedClient, *, time_scale: float = 1.0) -> str:
    provider = _sandbox(client, time_scale=time_scale)
    return provider.submit(_challenge(), _grant(LOCAL_PAGE, TokenSource.SANDBOX), _deadline())


def test_it_is_the_provider_the_engine_asks_for() -> None:
    provider: Provider = _sandbox(ScriptedClient())

    assert provider.polling(_challenge()) == PollTimes(15.0, 5.0)
    assert provider.polling(_challenge(CaptchaType.TURNSTILE)) == PollTimes(10.0, 5.0)


def test_a_submit_posts_key_and_challenge_and_returns_the_id() -> None:
    client = ScriptedClient(_ok(3397637370))

    assert _submit(client) == "3397637370"
    assert client.sent == [
        (
            "POST",
            "http://127.0.0.1:9000/in.php",
            {
                "key": KEY,
                "method": "userrecaptcha",
                "googlekey": "site-key",
                "pageurl": "http://127.0.0.1:8000/signup",
                "json": "1",
            },
        )
    ]


def test_a_poll_posts_key_and_id_and_returns_the_solution() -> None:
    client = ScriptedClient({**_ok(RECAPTCHA), "useragent": "Mozilla/5.0"})

    solution = _sandbox(client).poll(_challenge(), "77", _deadline())

    assert solution is not None
    assert (dict(solution.parts), solution.user_agent) == ({"token": RECAPTCHA}, "Mozilla/5.0")
    sent = {"key": KEY, "action": "get", "id": "77", "json": "1"}
    assert client.sent == [("POST", "http://127.0.0.1:9000/res.php", sent)]


@pytest.mark.parametrize("body", ["CAPCHA_NOT_READY", _error("CAPCHA_NOT_READY")])
def test_a_task_that_is_not_ready_is_no_solution_and_no_error(body: str | dict[str, object]) -> None:
    assert _sandbox(ScriptedClient(body)).poll(_challenge(), "77", _deadline()) is None


@pytest.mark.parametrize("code", sorted(set(CODES) - {"CAPCHA_NOT_READY"}))
def test_every_code_is_raised_as_the_error_of_its_reaction(code: str) -> None:
    expected = CODES[code]
    client = ScriptedClient(_error(code), code)

    with pytest.raises(CaptchaQAError) as submit:
        _submit(client, time_scale=0.1)
    with pytest.raises(CaptchaQAError) as poll:
        _sandbox(client).poll(_challenge(), "77", _deadline())

    assert type(submit.value) is ERRORS[expected.reaction]
    assert type(poll.value) is POLL_ERRORS[expected.reaction]
    assert code in submit.value.message
    assert submit.value.retry_after == (None if expected.pause is None else pytest.approx(expected.pause / 10))
    assert poll.value.retry_after == expected.pause


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("ERROR_ZERO_BALANCE", BalanceExhausted),
        ("ERROR_NO_SLOT_AVAILABLE", ProviderBusy),
        ("ERROR_WRONG_CAPTCHA_ID", TaskUnknown),
        ("ERROR_CAPTCHA_UNSOLVABLE", Unsolvable),
        ("ERROR_KEY_DOES_NOT_EXIST", KeyRejected),
        ("ERROR_PAGEURL", RequestRejected),
        ("ERROR_SERVER_ERROR", ProviderUnavailable),
    ],
)
def test_the_errors_are_the_ones_the_requirements_name(code: str, error: type[CaptchaQAError]) -> None:
    with pytest.raises(error):
        _submit(ScriptedClient(code))


@pytest.mark.parametrize("code", ["ERROR: 1005", "MAX_USER_TURN", "ERROR_TOO_MUCH_REQUESTS", "ERROR_SERVER_ERROR"])
def test_a_service_that_asks_to_slow_down_while_polling_does_not_lose_the_task(code: str) -> None:
    with pytest.raises(ProviderUnavailable):
        _sandbox(ScriptedClient(code)).poll(_challenge(), "77", _deadline())


UNUSABLE = [
    _reply(""),
    _reply("<html>502 Bad Gateway</html>", 502),
    _reply("<html>login</html>"),
    _reply("", 500),
    _reply("", 503),
    _reply("", 302, Location="/login"),
    _reply(_ok("03AF"), 500),
    _reply("ERROR_SOMETHING_NEW"),
    _reply('{"status":0,"request":"ERROR_SOMETHING_NEW"}'),
    _reply('{"status":1}'),
    _reply('{"status":1,"request":"two words"}'),
    TransportError("POST http://127.0.0.1:9000/in.php: it was refused", kind="refused", sent=False),
    TransportError("POST http://127.0.0.1:9000/in.php: it was reset", kind="reset"),
]


@pytest.mark.parametrize("reply", UNUSABLE, ids=repr)
def test_an_unusable_answer_is_a_passing_fault_of_the_service(reply: Reply | CaptchaQAError) -> None:
    client = ScriptedClient(reply, reply, reply, reply)
    provider = _sandbox(client)

    for call in (
        lambda: _submit(client),
        lambda: provider.poll(_challenge(), "77", _deadline()),
        lambda: provider.balance(_deadline()),
        lambda: provider.threads(_deadline()),
    ):
        with pytest.raises(ProviderUnavailable) as caught:
            call()
        assert caught.value.sent == getattr(reply, "sent", True)
        assert caught.value.__context__ is None
        assert "sandbox" in caught.value.message


def test_a_known_code_counts_whatever_the_status() -> None:
    with pytest.raises(KeyRejected):
        _submit(ScriptedClient(_reply("IP_BANNED", 403)))


def _http_date(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7),
        ("0", 0),
        ("-5", 0),
        ("99999999", 3600),
        ("1.5", 1.5),
        (" 7 ", 7),
        ("nan", None),
        ("inf", None),
        ("1e999", None),
        ("9" * 5000, None),
        ("soon", None),
        ("", None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3600),
        ("Fri, 31 Dec 9999 23:59:59 -2359", None),
        ("Mon, 01 Jan 0001 00:00:00 +2359", None),
        ("Mon, 31 Feb 2025 00:00:00 GMT", None),
        ("Mon, 01 Jan 2025 99:00:00 GMT", None),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
    ],
)
def test_too_many_requests_is_busy_for_as_long_as_the_service_says(header: str, seconds: float | None) -> None:
    reply = _reply("slow down", 429, **{"Retry-After": header})

    with pytest.raises(ProviderBusy) as submit:
        _submit(ScriptedClient(reply), time_scale=0.01)
    with pytest.raises(ProviderUnavailable) as poll:
        _sandbox(ScriptedClient(reply)).poll(_challenge(), "77", _deadline())

    assert submit.value.retry_after == poll.value.retry_after == seconds


_HEADER = st.one_of(
    st.text(st.characters(max_codepoint=0xFF)),
    st.from_regex(r"\A-?[0-9]{0,400}(\.[0-9]{0,20})?(e[0-9]{1,4})?\Z"),
    st.builds(
        "{}, {} {} {} {}:{}:{} {}".format,
        st.sampled_from(["Fri", "Friday", "", "Fro"]),
        *[st.sampled_from(["0", "00", "31", "99", "-1", "9" * 30, "é"]) for _ in range(6)],
        st.sampled_from(["GMT", "-2359", "+2359", "+9999", "-0000", "+0000", "EST", "", "+99999999"]),
    ),
    st.builds(
        "Fri, {:02} {} {:04} {:02}:{:02}:{:02} {}".format,
        st.integers(0, 99),
        st.sampled_from(["Jan", "Feb", "Dec", "Xyz"]),
        st.integers(0, 9999),
        *[st.integers(0, 99) for _ in range(3)],
        st.sampled_from(["GMT", "-2359", "+2359", "-0000", "+0000", "EST"]),
    ),
)


@settings(max_examples=300)
@given(status=st.sampled_from([429, 500, 503, 302]), header=_HEADER)
def test_whatever_a_service_puts_into_its_headers_it_is_one_of_our_errors(status: int, header: str) -> None:
    reply = _reply("slow down", status, **{"Retry-After": header, "Content-Type": header, "Location": header})

    with pytest.raises(ProviderError) as caught:
        _submit(ScriptedClient(reply))

    assert caught.value.retry_after is None or 0 <= caught.value.retry_after <= 3600


@pytest.mark.parametrize(("ahead", "low", "high"), [(60, 50, 60), (-60, 0, 0)])
def test_the_time_to_retry_may_be_a_date(ahead: float, low: float, high: float) -> None:
    reply = _reply("", 503, **{"Retry-After": _http_date(ahead)})

    with pytest.raises(ProviderUnavailable) as caught:
        _submit(ScriptedClient(reply))

    assert caught.value.retry_after is not None
    assert low <= caught.value.retry_after <= high


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (CaptchaType.RECAPTCHA_V2, RECAPTCHA),
        (CaptchaType.RECAPTCHA_V3, RECAPTCHA),
        (CaptchaType.TURNSTILE, "0.c4ptchaqaSANDBOXrest"),
        (
            CaptchaType.GEETEST_V3,
            {"challenge": "c", "validate": "5a9db0c4ca7a00", "seccode": "5a9db0c4ca7a00|jordan"},
        ),
    ],
)
def test_the_sandbox_takes_marked_tokens_only(kind: CaptchaType, value: object) -> None:
    unmarked = json.loads(json.dumps(value).replace("c4ptchaqa", "realtoken").replace("5a9db0c4ca7a", "123456789012"))
    client = ScriptedClient(_ok(value), _ok(unmarked))
    provider = _sandbox(client)

    assert provider.poll(_challenge(kind), "1", _deadline()) is not None
    with pytest.raises(ProviderError, match="without the sandbox's mark") as caught:
        provider.poll(_challenge(kind), "1", _deadline())

    assert type(caught.value) is ProviderError
    assert "realtoken" not in str(caught.value)


@pytest.mark.parametrize(
    ("dialect", "page", "grant", "reason"),
    [
        (SANDBOX, LOCAL_PAGE, fake_grant(LOCAL_PAGE.origin), "fake_grant"),
        (SANDBOX, LOCAL_PAGE, None, "no_grant"),
        (SANDBOX, LOCAL_PAGE, _grant(OTHER_LOCAL_PAGE, TokenSource.SANDBOX), "grant_mismatch"),
        (CAPTCHAAI, LOCAL_PAGE, _grant(LOCAL_PAGE, TokenSource.SANDBOX), "grant_other_source"),
        (CAPTCHAAI, PUBLIC_PAGE, _grant(PUBLIC_PAGE, TokenSource.STANDIN), "grant_other_source"),
    ],
)
def test_nothing_is_sent_for_a_page_the_grant_is_not_for(
    dialect: Dialect, page: Url, grant: ScopeGrant, reason: str
) -> None:
    client = ScriptedClient()
    provider = HttpProvider(dialect, key=KEY, client=client, base_url=SANDBOX_URL)

    with pytest.raises(ScopeDenied) as denied:
        provider.submit(_challenge(page=page), grant, _deadline())

    assert denied.value.reason == reason
    assert client.sent == []


def test_a_sandbox_elsewhere_is_refused() -> None:
    with pytest.raises(ScopeDenied) as denied:
        HttpProvider(SANDBOX, key=KEY, client=ScriptedClient(), base_url=Url.parse("https://sandbox.example"))

    assert denied.value.reason == "sandbox_not_loopback"


def test_a_live_provider_solves_a_proven_page_at_its_fixed_address() -> None:
    client = ScriptedClient(_ok("77"))
    provider = HttpProvider(CAPTCHAAI, key=KEY, client=client)

    provider.submit(_challenge(page=PUBLIC_PAGE), _grant(PUBLIC_PAGE, TokenSource.LIVE), _deadline())

    assert client.sent[0][1] == "https://ocr.captchaai.com/in.php"
    assert client.sent[0][2]["pageurl"] == "https://shop.example/signup"


@pytest.mark.parametrize(
    ("dialect", "key", "error", "words"),
    [
        (CAPTCHAAI, "", MissingSecret, "empty"),
        (CAPTCHAAI, "short-hidden", ConfigError, "12 characters, a key of captchaai has 32"),
        (SANDBOX, KEY, ConfigError, "url_env"),
    ],
)
def test_an_account_that_cannot_work_is_refused_at_once(
    dialect: Dialect, key: str, error: type[ConfigError], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        HttpProvider(dialect, key=key, client=ScriptedClient())

    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("challenge", "words"),
    [
        (_challenge(CaptchaType.IMAGE), "sandbox does not solve image: use an account of captchaai"),
        (_challenge(CaptchaType.HCAPTCHA), "sandbox does not solve hcaptcha: no provider here does"),
        (
            _challenge(CaptchaType.GEETEST_V3),
            "sandbox needs challenge for geetest_v3, and .*/signup shows none",
        ),
    ],
)
def test_a_challenge_the_service_cannot_solve_is_refused_before_it_is_sent(challenge: Challenge, words: str) -> None:
    client = ScriptedClient()
    provider = _sandbox(client)

    for call in (
        lambda: provider.supports(challenge),
        lambda: provider.submit(challenge, _grant(LOCAL_PAGE, TokenSource.SANDBOX), _deadline()),
    ):
        with pytest.raises(ConfigError, match=words):
            call()

    assert client.sent == []


@pytest.mark.parametrize("body", ["12.34500", _ok("12.34500"), _ok(12.345), "OK|12.345"])
def test_the_balance_is_read_in_every_spelling(body: str | dict[str, object]) -> None:
    client = ScriptedClient(body)

    assert _sandbox(client).balance(_deadline()) == 12.345
    assert client.sent[0][2] == {"key": KEY, "action": "getbalance", "json": "1"}


@pytest.mark.parametrize("extra", [{}, {"status": 1}])
def test_the_threads_are_read_with_and_without_a_status(extra: dict[str, object]) -> None:
    client = ScriptedClient({**extra, "threads": "5", "working_threads": "2"})

    assert _sandbox(client).threads(_deadline()) == ThreadsInfo(5, 2)
    assert client.sent[0][2]["action"] == "threadsinfo"


def test_a_rejected_key_is_said_by_every_query() -> None:
    provider = _sandbox(ScriptedClient(_error("ERROR_WRONG_USER_KEY"), "ERROR_WRONG_USER_KEY"))

    with pytest.raises(KeyRejected):
        provider.balance(_deadline())
    with pytest.raises(KeyRejected):
        provider.threads(_deadline())


@pytest.mark.parametrize(
    ("scale", "times"), [(1.0, PollTimes(15.0, 5.0)), (0.1, PollTimes(1.5, 0.5)), (0.0, PollTimes(0.02, 0.02))]
)
def test_polling_is_scaled_but_never_a_busy_loop(scale: float, times: PollTimes) -> None:
    assert _sandbox(ScriptedClient(), time_scale=scale).polling(_challenge()) == times


def test_the_key_is_neither_in_a_repr_nor_in_the_frames_of_a_failure() -> None:
    client = ScriptedClient(TransportError("it was reset", kind="reset"))
    provider = _sandbox(client)

    with pytest.raises(ProviderUnavailable) as caught:
        provider.poll(_challenge(), "77", _deadline())

    assert KEY not in repr(provider)
    frame = caught.value.__traceback__
    while frame is not None:
        assert KEY not in repr(frame.tb_frame.f_locals) or frame.tb_frame.f_code.co_filename == __file__
        frame = frame.tb_next
