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
from pytest_captcha_qa.engine.reactions import ends_task
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import (
    BalanceExhausted,
    CaptchaQAError,
    ConfigError,
    KeyRejected,
    MissingSecret,
    ProviderBusy,
    ProviderError,
    ProviderNotRunning,
    ProviderUnavailable,
    RateLimited,
    RequestRejected,
    ScopeDenied,
    TaskSilent,
    TaskUnknown,
    TransportError,
    Unsolvable,
)
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge, EnvKind
from pytest_captcha_qa.model.solver_proxy import SolverProxy
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider.codes import CODES, ERRORS
from pytest_captcha_qa.provider.dialects import CAPSKIP, CAPTCHAAI, SANDBOX, TWOCAPTCHA, Dialect
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
        sent = url.query or (payload.body or b"").decode()
        pairs = parse_qsl(sent, keep_blank_values=True, strict_parsing=True)
        self.sent.append((method, url.without_query, dict(pairs)))
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


def _test_key() -> Challenge:
    return Challenge(CaptchaType.TURNSTILE, "1x00000000000000000000AA", LOCAL_PAGE)


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
    assert type(poll.value) is ERRORS[expected.reaction]
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
    with pytest.raises((ProviderUnavailable, RateLimited)) as caught:
        _sandbox(ScriptedClient(code)).poll(_challenge(), "77", _deadline())

    assert not ends_task(caught.value)


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

    with pytest.raises(RateLimited) as submit:
        _submit(ScriptedClient(reply), time_scale=0.01)
    with pytest.raises(RateLimited) as poll:
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


SANDBOX_TOKENS = [
    (CaptchaType.RECAPTCHA_V2, RECAPTCHA),
    (CaptchaType.GEETEST_V3, {"challenge": "c", "validate": "5a9db0c4ca7a00", "seccode": "5a9db0c4ca7a00|jordan"}),
    (CaptchaType.IMAGE, "QATEST7"),
]


@pytest.mark.parametrize(("kind", "value"), SANDBOX_TOKENS)
@pytest.mark.parametrize("dialect", [CAPTCHAAI, CAPSKIP, TWOCAPTCHA], ids=lambda dialect: dialect.name)
def test_a_sandbox_behind_a_real_services_name_makes_tokens_for_this_machine_only(
    dialect: Dialect, kind: CaptchaType, value: object
) -> None:
    client = ScriptedClient(_ok(value), _ok(value))
    provider = HttpProvider(dialect, key=KEY, client=client, base_url=SANDBOX_URL)

    assert provider.poll(_challenge(kind, page=LOCAL_PAGE), "1", _deadline()) is not None
    with pytest.raises(ProviderError, match=r"is a sandbox: .* is not sent to https://shop\.example") as caught:
        provider.poll(_challenge(kind, page=PUBLIC_PAGE), "1", _deadline())

    assert ends_task(caught.value)


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
    ("dialect", "challenge", "words"),
    [
        (CAPTCHAAI, _challenge(CaptchaType.ALTCHA), "captchaai does not solve altcha: use an account of .*sandbox"),
        (SANDBOX, _test_key(), "/signup shows the vendor's official test key 1x.* provider = .testkeys."),
        (CAPTCHAAI, _test_key(), "takes no token of captchaai"),
        (SANDBOX, _challenge(CaptchaType.IMAGE), "sandbox needs body for image, and .*/signup shows none"),
        (SANDBOX, _challenge(CaptchaType.ALTCHA), "sandbox needs challenge_json for altcha, and .*/signup shows none"),
        (
            SANDBOX,
            _challenge(CaptchaType.GEETEST_V3),
            "sandbox needs challenge for geetest_v3, and .*/signup shows none",
        ),
    ],
)
def test_a_challenge_the_service_cannot_solve_is_refused_before_it_is_sent(
    dialect: Dialect, challenge: Challenge, words: str
) -> None:
    client = ScriptedClient()
    provider = HttpProvider(dialect, key=KEY, client=client, base_url=SANDBOX_URL)

    for call in (
        lambda: provider.supports(challenge),
        lambda: provider.submit(challenge, _grant(LOCAL_PAGE, dialect.source), _deadline()),
    ):
        with pytest.raises(ConfigError, match=words):
            call()

    assert client.sent == []


@pytest.mark.parametrize(
    ("data", "version", "invisible"),
    [({}, None, None), ({"version": "v3"}, "v3", None), ({"invisible": "1"}, None, "1")],
)
def test_the_page_tells_which_kind_of_enterprise_key_it_has(
    data: dict[str, str], version: str | None, invisible: str | None
) -> None:
    client = ScriptedClient(_ok("1"))
    challenge = _challenge(CaptchaType.RECAPTCHA_ENTERPRISE, data=data)
    _sandbox(client).submit(challenge, _grant(LOCAL_PAGE, TokenSource.SANDBOX), _deadline())

    (_, _, sent) = client.sent[0]
    assert (sent.get("version"), sent.get("invisible")) == (version, invisible)
    assert sent["enterprise"] == "1"


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


# CapSkip, an app on a machine of the team's.

CAPSKIP_URL = Url.parse("http://127.0.0.1:8080")


def test_an_id_that_repeats_the_key_is_none_for_it_would_stand_in_records() -> None:
    with pytest.raises(ProviderUnavailable, match="an answer without a task id"):
        _submit(ScriptedClient(_ok(f"id-{KEY}")))


def _capskip(client: HttpClient, *, key: str = "", **more: Any) -> HttpProvider:
    return HttpProvider(CAPSKIP, key=key, client=client, base_url=CAPSKIP_URL, **more)


@pytest.mark.parametrize("key", ["", "x", "any string & more"])
def test_capskip_takes_any_key_and_is_asked_for_results_by_get(key: str) -> None:
    client = ScriptedClient(_ok("77"), _ok("03AFtoken"))
    provider = _capskip(client, key=key)

    provider.submit(_challenge(page=PUBLIC_PAGE), _grant(PUBLIC_PAGE, TokenSource.LIVE), _deadline())
    provider.poll(_challenge(page=PUBLIC_PAGE), "77", _deadline())

    assert client.sent == [
        (
            "POST",
            "http://127.0.0.1:8080/in.php",
            {
                "key": key,
                "method": "userrecaptcha",
                "googlekey": "site-key",
                "pageurl": "https://shop.example/signup",
                "json": "1",
            },
        ),
        ("GET", "http://127.0.0.1:8080/res.php", {"key": key, "action": "get", "id": "77", "json": "1"}),
    ]


def test_capskip_is_a_real_provider_that_needs_a_grant_with_a_proof() -> None:
    client = ScriptedClient()

    with pytest.raises(ScopeDenied, match="makes live ones"):
        _capskip(client).submit(_challenge(), _grant(LOCAL_PAGE, TokenSource.SANDBOX), _deadline())

    assert client.sent == []


def test_an_empty_answer_of_capskip_says_nothing_about_the_task_and_at_others_it_is_a_fault() -> None:
    with pytest.raises(TaskSilent):
        _capskip(ScriptedClient(_reply(" "))).poll(_challenge(), "77", _deadline())
    with pytest.raises(ProviderUnavailable):
        _capskip(ScriptedClient(_reply("", 500))).poll(_challenge(), "77", _deadline())
    with pytest.raises(ProviderUnavailable, match="an empty answer"):
        _sandbox(ScriptedClient(_reply(""))).poll(_challenge(), "77", _deadline())


def test_a_capskip_that_does_not_run_is_named_as_that() -> None:
    refused = TransportError("POST http://127.0.0.1:8080/in.php: it was refused", kind="refused", sent=False)

    with pytest.raises(ProviderNotRunning, match=r"capskip is not running at http://127.0.0.1:8080: start the app"):
        _capskip(ScriptedClient(refused)).poll(_challenge(), "77", _deadline())


def test_capskip_has_neither_balance_nor_threads_nor_reports() -> None:
    client = ScriptedClient()
    provider = _capskip(client)

    assert provider.balance(_deadline()) is None
    assert provider.threads(_deadline()) is None
    assert not provider.report("77", good=True, deadline=_deadline())
    assert client.sent == []


# 2captcha.


def _twocaptcha(client: HttpClient, **more: Any) -> HttpProvider:
    return HttpProvider(TWOCAPTCHA, key=KEY, client=client, **more)


@pytest.mark.parametrize(
    ("body", "kind", "parts", "price"),
    [
        ("OK|03AFtoken|0.00299", CaptchaType.RECAPTCHA_V2, {"token": "03AFtoken"}, 0.00299),
        ({**_ok("03AFtoken"), "price": "0.00299"}, CaptchaType.RECAPTCHA_V2, {"token": "03AFtoken"}, 0.00299),
        ({**_ok("03AFtoken"), "price": -1}, CaptchaType.RECAPTCHA_V2, {"token": "03AFtoken"}, None),
        ("OK|03AFtoken", CaptchaType.RECAPTCHA_V2, {"token": "03AFtoken"}, None),
        ("OK|1.5", CaptchaType.IMAGE, {"token": "1.5"}, None),
        ("OK|two words|0.5", CaptchaType.IMAGE, {"token": "two words"}, 0.5),
        (
            "OK|challenge:c,validate:v,seccode:v|jordan|0.001",
            CaptchaType.GEETEST_V3,
            {"challenge": "c", "validate": "v", "seccode": "v|jordan"},
            0.001,
        ),
        (
            "OK|challenge:c,validate:v,seccode:v|jordan",
            CaptchaType.GEETEST_V3,
            {"challenge": "c", "validate": "v", "seccode": "v|jordan"},
            None,
        ),
    ],
)
def test_a_price_is_kept_and_no_part_of_a_token(
    body: Any, kind: CaptchaType, parts: dict[str, str], price: float | None
) -> None:
    client = ScriptedClient(body)

    solution = _twocaptcha(client).poll(_challenge(kind), "77", _deadline())

    assert solution is not None
    assert (dict(solution.parts), solution.price) == (parts, price)
    assert client.sent[0][2]["action"] == "get2"


@pytest.mark.parametrize(("good", "action"), [(True, "reportgood"), (False, "reportbad")])
@pytest.mark.parametrize("answer", ["OK_REPORT_RECORDED", _ok("OK_REPORT_RECORDED")])
def test_a_report_is_sent_where_the_service_takes_it(good: bool, action: str, answer: Any) -> None:
    client = ScriptedClient(answer)

    assert _twocaptcha(client).report("77", good=good, deadline=_deadline())
    assert client.sent == [
        ("POST", "https://2captcha.com/res.php", {"key": KEY, "action": action, "id": "77", "json": "1"})
    ]


@pytest.mark.parametrize("code", ["ERROR_DUPLICATE_REPORT", "REPORT_NOT_RECORDED", "ERROR_REPORT_NOT_RECORDED"])
def test_a_report_that_is_not_taken_is_told_as_an_error(code: str) -> None:
    with pytest.raises(RequestRejected, match=code):
        _twocaptcha(ScriptedClient(code)).report("77", good=True, deadline=_deadline())


def test_captchaai_is_told_of_bad_tokens_only() -> None:
    client = ScriptedClient(_ok("OK_REPORT_RECORDED"))
    provider = HttpProvider(CAPTCHAAI, key=KEY, client=client)

    assert not provider.report("77", good=True, deadline=_deadline())
    assert provider.report("77", good=False, deadline=_deadline())
    assert [sent["action"] for _, _, sent in client.sent] == ["reportbad"]


# The team's proxy.

PROXY = SolverProxy.parse("http://qa:hidden@proxy.shop.example:3128")


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (CaptchaType.RECAPTCHA_V2, {"proxy": "qa:hidden@proxy.shop.example:3128", "proxytype": "HTTP"}),
        (CaptchaType.RECAPTCHA_V3, {}),
    ],
)
def test_a_solvers_proxy_is_sent_where_the_type_is_solved_through_one(kind: CaptchaType, told: dict[str, str]) -> None:
    client = ScriptedClient(_ok("77"))
    provider = _twocaptcha(client, solver_proxy=PROXY)

    provider.submit(_challenge(kind, page=PUBLIC_PAGE), _grant(PUBLIC_PAGE, TokenSource.LIVE), _deadline())

    sent = client.sent[0][2]
    assert {name: sent[name] for name in ("proxy", "proxytype") if name in sent} == told
    assert "hidden" not in repr(provider) + repr(PROXY)


@pytest.mark.parametrize(
    ("dialect", "kind"), [(CAPSKIP, "socks4"), (TWOCAPTCHA, "socks5h"), (CAPTCHAAI, "ftp"), (SANDBOX, "http")]
)
def test_a_kind_of_proxy_that_the_service_does_not_take_is_refused(dialect: Dialect, kind: str) -> None:
    proxy = SolverProxy.parse(f"{kind}://qa:hidden@proxy.shop.example:3128")

    with pytest.raises(ConfigError, match=f"{dialect.name} takes no {kind} proxy to solve through") as caught:
        HttpProvider(dialect, key=KEY, client=ScriptedClient(), base_url=CAPSKIP_URL, solver_proxy=proxy)

    assert "hidden" not in str(caught.value)


# What is told of an answer that nobody understands.


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ("[1,2]", 200, "with HTTP 200 and a JSON list of 5 characters with 2 items"),
        ("null", 200, "with HTTP 200 and a JSON null"),
        ("5", 200, "with HTTP 200 and a JSON number of 1 characters"),
        ("", 200, "with HTTP 200 and an empty answer"),
        ("<html>no</html>", 502, "with HTTP 502 and an HTML page of 15 characters"),
        ("ERROR: 1006", 200, "with HTTP 200 and a text of 11 characters, the unknown code ERROR: 1006"),
        ('{"status":0,"error":"x"}', 200, "a JSON object of 24 characters with the keys error, status, status 0"),
        (
            '{"status":1,"request":"ERROR_NEW"}',
            200,
            "with the keys request, status, status 1, the unknown code ERROR_NEW",
        ),
        ('{"' + "k" * 40 + '":1}', 200, "with the keys <40>"),
        ('{"' + KEY + '":1}', 503, "HTTP 503 and a JSON object of 38 characters with the keys <32>"),
    ],
)
def test_an_unknown_answer_is_told_by_type_keys_length_and_status(body: str, status: int, told: str) -> None:
    with pytest.raises(ProviderUnavailable) as caught:
        _sandbox(ScriptedClient(_reply(body, status))).poll(_challenge(), "77", _deadline())

    assert told in caught.value.message


_SECRETS = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters='"\\'), min_size=16, max_size=32
)


@settings(max_examples=200, deadline=None)
@given(
    secret=_SECRETS.filter(lambda text: text not in CODES),
    status=st.sampled_from([200, 302, 401, 429, 500, 503]),
    shape=st.sampled_from(
        ["{}", "x {} y", '{{"{}":1}}', '{{"status":0,"request":"{}"}}', "<p>{}</p>", '["{}"]', '"{}"', "ERROR_{}"]
    ),
)
def test_no_error_repeats_the_key_whatever_the_service_answers(secret: str, status: int, shape: str) -> None:
    reply = _reply(shape.format(secret), status, **{"Retry-After": secret})
    provider = _capskip(ScriptedClient(reply), key=secret)

    with pytest.raises(CaptchaQAError) as caught:
        provider.submit(_challenge(page=PUBLIC_PAGE), _grant(PUBLIC_PAGE, TokenSource.LIVE), _deadline())

    error = caught.value
    assert secret not in f"{error!r} {error} {error.message}"
    assert error.__cause__ is error.__context__ is None
