"""Each dialect and each switch of the solving service, set over the control endpoint as tests do it."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest

from pytest_captcha_qa.sandbox import altcha, pictures
from pytest_captcha_qa.sandbox.accounts import KeyState
from pytest_captcha_qa.sandbox.answers import SOLVER_AGENT
from pytest_captcha_qa.sandbox.described import DescriptionProblem
from pytest_captcha_qa.sandbox.dialects import DIALECTS, SANDBOX
from pytest_captcha_qa.sandbox.images import image_of, text_of
from pytest_captcha_qa.sandbox.tasks import Refused
from pytest_captcha_qa.sandbox.types import TYPES
from pytest_captcha_qa.sandbox.web import Fields

SITEKEY = "6LcSANDBOXv2sitekeyAAAAAAAAAAAAAAAAAAAAA"
TURNSTILE = {"method": "turnstile", "sitekey": SITEKEY}
V2 = {"method": "userrecaptcha", "googlekey": SITEKEY}
GEETEST = {"method": "geetest", "gt": "5a9db0c4ca7a00000000000000000001", "challenge": "c" * 32}
NOT_READY = {"status": 0, "request": "CAPCHA_NOT_READY"}


class Service:
    """One key of the solving service and its switches."""

    def __init__(self, world: Any, client: Any, page: str, key: str) -> None:
        self.world, self.client, self.page, self.key = world, client, page, key

    def switch(self, **data: Any) -> None:
        self.world.provider.keys[self.key] = KeyState.from_data(data)

    def submit(self, what: Any = None, **changes: Any) -> Any:
        fields = {"key": self.key, "pageurl": self.page, "json": "1", **(what or TURNSTILE), **changes}
        return self.client.post("/in.php", {name: value for name, value in fields.items() if value is not None})

    def task(self, what: Any = None, **changes: Any) -> Any:
        reply = self.submit(what, **changes)
        return reply.json()["request"] if reply.body.startswith(b"{") else reply.text.partition("|")[2]

    def ask(self, task_id: Any = None, *, verb: str = "GET", **changes: Any) -> Any:
        fields = {"key": self.key, "action": "get", "id": task_id, "json": "1", **changes}
        sent = {name: value for name, value in fields.items() if value is not None}
        return self.client.get("/res.php", sent) if verb == "GET" else self.client.post("/res.php", sent)

    def solved(self, what: Any = None, **changes: Any) -> Any:
        task_id = self.task(what)
        self.world.clock.advance(1000)
        return self.ask(task_id, **changes)


@pytest.fixture
def service(world: Any, provider: Any, page: str, key: str) -> Service:
    return Service(world, provider, page, key)


@pytest.fixture
def speaking(world: Any, provider: Any, page: str) -> Any:
    """`speaking("capskip")` is a key that speaks the dialect of its beginning."""
    return lambda dialect: Service(world, provider, page, f"{dialect}-a-key-of-this-test".ljust(32, "0")[:32])


def test_a_request_for_the_head_alone_makes_no_task(service: Service, world: Any) -> None:
    asked = {"key": service.key, "pageurl": service.page, **TURNSTILE}
    assert service.client.call("HEAD", "/in.php", params=asked).status == 405
    assert service.solved()
    assert len(world.work.tasks) == 1


def test_the_own_dialect_takes_every_type_of_the_sandbox() -> None:
    assert set(TYPES) <= set(SANDBOX.takes)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_key_speaks_the_dialect_that_it_begins_with(speaking: Any, dialect: str) -> None:
    assert speaking(dialect).submit().json()["status"] == 1


@pytest.mark.parametrize(
    ("dialect", "key", "accepted"),
    [
        ("captchaai", "captchaai", False),
        ("twocaptcha", "twocaptcha-short", False),
        ("capskip", "capskip", True),
        ("capskip", "any string at all", True),
    ],
)
def test_the_length_of_a_key_matters_to_the_clouds_only(
    service: Service, dialect: str, key: str, accepted: bool
) -> None:
    service.key = key
    if not key.startswith(dialect):
        service.switch(dialect=dialect)
    answer = service.submit().json()
    assert answer["status"] == int(accepted)
    assert accepted or answer["request"] == "ERROR_WRONG_USER_KEY"


@pytest.mark.parametrize("code", ["ERROR_WRONG_USER_KEY", "ERROR: 1001", "IP_BANNED"])
def test_a_key_can_be_refused_by_any_code_at_both_endpoints(service: Service, code: str) -> None:
    task_id = service.task()
    service.switch(refused=code)
    refusal = {"status": 0, "request": code}
    assert (service.submit().json(), service.ask(task_id).json()) == (refusal, refusal)


@pytest.mark.parametrize(
    ("dialect", "what"),
    [
        ("capskip", {"method": "hcaptcha", "sitekey": SITEKEY}),
        ("capskip", {"method": "geetest_v4", "captcha_id": "c" * 32}),
        ("captchaai", {"method": "altcha", "challenge_json": "{}"}),
    ],
)
def test_a_dialect_refuses_the_types_it_does_not_have(speaking: Any, dialect: str, what: dict[str, str]) -> None:
    assert speaking(dialect).submit(what).json() == {"status": 0, "request": "ERROR_BAD_PARAMETERS"}


def test_a_type_about_which_sources_disagree_can_be_taken_away(speaking: Any) -> None:
    service, hcaptcha = speaking("captchaai"), {"method": "hcaptcha", "sitekey": SITEKEY}
    assert service.submit(hcaptcha).json()["status"] == 1
    service.switch(without="geetest_v4,hcaptcha")
    assert [service.submit(what).json()["status"] for what in (hcaptcha, TURNSTILE)] == [0, 1]


@pytest.mark.parametrize(
    ("dialect", "action"),
    [("capskip", "getbalance"), ("capskip", "get2"), ("captchaai", "get2"), ("twocaptcha", "threadsinfo")],
)
def test_a_dialect_refuses_the_actions_it_does_not_have(speaking: Any, dialect: str, action: str) -> None:
    assert speaking(dialect).ask(action=action).json()["request"] == "ERROR_BAD_PARAMETERS"


def test_capskip_takes_tasks_by_post_and_gives_results_by_get(speaking: Any, provider: Any, page: str) -> None:
    service = speaking("capskip")
    asked = {"key": service.key, "pageurl": page, "json": "1", **TURNSTILE}
    assert provider.get("/in.php", asked).json()["request"] == "ERROR_BAD_PARAMETERS"
    assert service.ask(service.task(), verb="POST").json()["request"] == "ERROR_BAD_PARAMETERS"


@pytest.mark.parametrize(("ids", "kind"), [("integer", int), ("string", str)])
def test_an_id_is_what_the_switch_says(service: Service, ids: str, kind: type) -> None:
    service.switch(ids=ids)
    assert {type(service.task(what)) for what in (V2, TURNSTILE)} == {kind}


@pytest.mark.parametrize("where", ["request", "result", "solution"])
def test_the_answer_stands_where_the_switch_says(service: Service, where: str) -> None:
    service.switch(answer_in=where)
    body = service.solved().json()
    assert set(body) == {"status", where}
    token = body["solution"]["token"] if where == "solution" else body[where]
    assert token.startswith("0.c4ptchaqaSANDBOX")


@pytest.mark.parametrize(("asked", "grammar", "is_json"), [("0", "json", True), ("1", "text", False)])
def test_the_grammar_can_be_another_than_was_asked_for(
    service: Service, asked: str, grammar: str, is_json: bool
) -> None:
    service.switch(grammar=grammar)
    replies = [service.submit(json=asked), service.ask("1", json=asked), service.submit(json=asked, pageurl="")]
    assert [reply.body.startswith(b"{") for reply in replies] == [is_json] * 3


@pytest.mark.parametrize("name", ["useragent", "userAgent", "user_agent"])
def test_a_user_agent_comes_under_each_of_its_names(service: Service, name: str) -> None:
    service.switch(user_agent=name)
    assert service.solved().json()[name] == SOLVER_AGENT


@pytest.mark.parametrize(("shape", "kind"), [("object", dict), ("text", str), ("list", list)])
def test_cookies_come_in_three_shapes(service: Service, shape: str, kind: type) -> None:
    service.switch(cookies=shape)
    assert isinstance(service.solved().json()["cookies"], kind)


@pytest.mark.parametrize("prefixed", [True, False])
@pytest.mark.parametrize("parts", ["object", "json", "pairs", "mixed"])
def test_geetest_comes_in_all_its_shapes(service: Service, parts: str, prefixed: bool) -> None:
    service.switch(parts=parts, prefixed=prefixed)
    task_id = service.task(GEETEST)
    service.world.clock.advance(1000)
    value, plain = service.ask(task_id).json()["request"], service.ask(task_id, json="0").text.removeprefix("OK|")
    prefix = "geetest_" if prefixed else ""
    names = [prefix + name for name in ("challenge", "validate", "seccode")]
    assert isinstance(value, dict) is (parts in ("object", "mixed"))
    if parts in ("object", "json"):
        assert list(json.loads(plain)) == names
    else:
        assert [pair.partition(":")[0] for pair in plain.split(",")] == names


@pytest.mark.parametrize(
    ("when_busy", "code"), [("zero_balance", "ERROR_ZERO_BALANCE"), ("no_slot", "ERROR_NO_SLOT_AVAILABLE")]
)
def test_a_busy_account_refuses_by_the_code_of_the_switch(service: Service, when_busy: str, code: str) -> None:
    service.switch(threads=1, when_busy=when_busy)
    assert [service.submit().json()["status"] for _ in range(2)] == [1, 0]
    assert service.submit().json()["request"] == code


def test_a_busy_account_can_queue_and_solves_one_after_the_other(service: Service) -> None:
    service.switch(threads=1, when_busy="queue")
    first, second, third = (service.world.work.tasks[service.task()] for _ in range(3))
    assert first.ready_at < second.ready_at < third.ready_at
    threads = service.ask(action="threadsinfo").json()
    assert (threads["threads"], threads["working_threads"]) == ("1", "1")
    service.world.clock.advance(first.ready_at - service.world.clock.now)
    assert [service.ask(task.id).json()["status"] for task in (first, second)] == [1, 0]
    assert next(iter(service.world.audit.provider.by_key.values())).peak == 3


def test_a_token_can_be_read_once_and_is_an_empty_body_later(service: Service) -> None:
    service.switch(read_once=True)
    task_id = service.task()
    service.world.clock.advance(1000)
    assert service.ask(task_id).json()["status"] == 1
    assert service.ask(task_id).body == b""
    assert service.world.audit.provider.tasks[task_id].reads == 1


@pytest.mark.parametrize(
    ("waiting", "bodies"),
    [("code", [NOT_READY, NOT_READY]), ("empty", [None, None]), ("empty_first", [None, NOT_READY])],
)
def test_a_task_in_work_is_a_code_or_silence(service: Service, waiting: str, bodies: list[Any]) -> None:
    service.switch(waiting=waiting)
    task_id = service.task()
    replies = [service.ask(task_id) for _ in range(2)]
    assert [reply.json() if reply.body else None for reply in replies] == bodies


def test_capskip_says_nothing_about_an_unknown_id_but_names_the_code_for_zero(speaking: Any) -> None:
    service = speaking("capskip")
    assert service.ask("1").body == b""
    assert service.ask("0").json()["request"] == "ERROR_WRONG_CAPTCHA_ID"


def test_an_error_can_come_with_a_text_beside(service: Service) -> None:
    service.switch(error_text=True)
    assert set(service.ask("1").json()) == {"status", "request", "error_text"}


@pytest.mark.parametrize(
    ("code", "older"), [("IP_BANNED", "ERROR_IP_BANNED"), ("ERROR_REPORT_NOT_RECORDED", "REPORT_NOT_RECORDED")]
)
def test_codes_with_two_spellings_come_in_either(service: Service, code: str, older: str) -> None:
    for older_codes, expected in ((False, code), (True, older)):
        service.switch(refused=code, older_codes=older_codes)
        assert service.submit().json()["request"] == expected


def test_balance_and_threads_are_texts_or_numbers(service: Service) -> None:
    service.switch(balance=2, threads=3, balance_as="number", threads_as="number", threads_status=False)
    assert service.ask(action="getbalance").json()["request"] == 2
    assert service.ask(action="threadsinfo").json() == {"threads": 3, "working_threads": 0}
    service.switch(threads=3, free_threads=True)
    assert service.ask(action="threadsinfo").json()["free_threads"] == "3"


def test_get2_adds_the_price(service: Service) -> None:
    body = service.solved(action="get2").json()
    assert float(body["price"]) > 0
    assert service.solved(action="get2", json=None).text == f"OK|{next_token(service)}|{body['price']}"


def next_token(service: Service) -> str:
    return list(service.world.registry._tokens)[-1]


def test_several_tasks_are_asked_for_at_once(service: Service) -> None:
    ready = service.task()
    service.world.clock.advance(1000)
    slow = service.task()
    ids = f"{ready},{slow},1"
    plain = service.ask(ids=ids, json="0").text
    assert plain.split("|")[1:] == ["CAPCHA_NOT_READY", "ERROR_WRONG_CAPTCHA_ID"]
    assert service.ask(ids=ids).json() == {"status": 1, "request": plain}


@pytest.mark.parametrize("verdict", ["good", "bad"])
def test_a_solution_is_reported_once_and_within_a_quarter_of_an_hour(service: Service, verdict: str) -> None:
    task_id, late = service.task(), service.task()
    action = f"report{verdict}"
    assert service.ask(task_id, action=action).json()["request"] == "ERROR_REPORT_NOT_RECORDED"
    service.world.clock.advance(800)
    service.ask(task_id)
    service.ask(late)
    assert service.ask(task_id, action=action).json() == {"status": 1, "request": "OK_REPORT_RECORDED"}
    assert service.ask(task_id, action=action).json()["request"] == "ERROR_DUPLICATE_REPORT"
    service.world.clock.advance(200)
    assert service.ask(late, action=action, json="0").text == "ERROR_REPORT_NOT_RECORDED"
    counts = service.world.audit.provider.tasks[task_id]
    assert (counts.reports_good, counts.reports_bad) == ((1, 0) if verdict == "good" else (0, 1))


def test_too_many_bad_reports_are_not_recorded(service: Service) -> None:
    tasks = [service.task() for _ in range(10)]
    service.world.clock.advance(800)
    for task_id in tasks:
        service.ask(task_id)
    answers = [service.ask(task_id, action="reportbad").json()["status"] for task_id in tasks]
    assert answers == [1] * 9 + [0]


def test_capskip_tells_the_counter_of_altcha_beside_the_token(speaking: Any) -> None:
    challenge = altcha.new_challenge("key", expires=2e9)
    body = speaking("capskip").solved({"method": "altcha", "challenge_json": json.dumps(challenge)}).json()
    assert body["solution"]["token"] == body["request"]
    assert body["solution"]["number"] == json.loads(base64.b64decode(body["request"]))["number"]


def test_the_header_for_pages_is_sent_where_it_is_asked_for_and_known(service: Service, speaking: Any) -> None:
    allowed = "access-control-allow-origin"
    assert service.submit(header_acao="1").header(allowed) == "*"
    assert service.submit().header(allowed) is None
    assert speaking("captchaai").submit(header_acao="1").header(allowed) is None


@pytest.mark.parametrize(
    ("dialect", "kind", "status"),
    [("capskip", "SOCKS4", 0), ("capskip", "socks5h", 1), ("captchaai", "SOCKS5H", 0), ("twocaptcha", "socks4", 1)],
)
def test_a_dialect_refuses_the_kinds_of_proxies_it_does_not_have(
    speaking: Any, dialect: str, kind: str, status: int
) -> None:
    assert speaking(dialect).submit(proxy="user:word@127.0.0.1:3128", proxytype=kind).json()["status"] == status


def test_parameters_without_effect_are_accepted(service: Service) -> None:
    beside = {"soft_id": "4580", "softId": "1", "debug_dump": "1", "pingback": "http://127.0.0.1:9/", "proxy": "a:1"}
    assert service.submit(**beside, proxytype="HTTP", cookies="a:b", userAgent="x").json()["status"] == 1


@pytest.mark.parametrize(
    "data",
    [
        {"dialect": "latin"},
        {"ids": "roman"},
        {"read_once": 1},
        {"read_once": "yes"},
        {"image_least": -1},
        {"given": {}},
        {"money": 1},
    ],
)
def test_a_switch_that_makes_no_sense_is_refused(data: dict[str, Any]) -> None:

    with pytest.raises(DescriptionProblem):
        KeyState.from_data(data)


def png(side: int = 50, *, size: int = 2000) -> bytes:
    return (b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + struct.pack(">II", side, side)).ljust(size, b"\0")


@pytest.mark.parametrize(
    ("dialect", "content", "code"),
    [
        ("captchaai", png(size=500), "ERROR_ZERO_CAPTCHA_FILESIZE"),
        ("captchaai", png(size=1_100_000), "ERROR_TOO_BIG_CAPTCHA_FILESIZE"),
        ("captchaai", png(1001), "ERROR_IMAGE_DIMENSIONS_TOO_LARGE"),
        ("twocaptcha", b"no image".ljust(200), "ERROR_IMAGE_TYPE_NOT_SUPPORTED"),
        ("capskip", b"no image".ljust(200), "ERROR_INVALID_IMAGE"),
    ],
)
def test_an_image_that_a_dialect_does_not_take_is_refused(
    speaking: Any, dialect: str, content: bytes, code: str
) -> None:

    account = speaking(dialect)
    fields = Fields((("method", "base64"), ("body", base64.b64encode(content).decode())))
    with pytest.raises(Refused) as refused:
        image_of(fields, DIALECTS[dialect].switches("image"))
    assert account.world.provider.account(Fields((("key", account.key),))).spelled(refused.value.code) == code


def test_a_picture_that_is_not_the_sandboxes_is_known_as_unreadable() -> None:
    with pytest.raises(Refused, match="ERROR_CAPTCHAIMAGE_BLOCKED"):
        text_of(png())


def test_an_image_comes_as_a_file_too(service: Service, page: str) -> None:
    text = pictures.new_text()
    parts = {"key": service.key, "method": "post", "json": "1"}
    body = b"".join(
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in parts.items()
    )
    body += b'--x\r\nContent-Disposition: form-data; name="file"; filename="c.png"\r\n\r\n'
    body += pictures.drawn(text) + b"\r\n--x--\r\n"
    headers = {"content-type": "multipart/form-data; boundary=x"}
    task_id = service.client.call("POST", "/in.php", body=body, headers=headers).json()["request"]
    service.world.clock.advance(1000)
    assert service.ask(task_id).json()["request"] == text


@pytest.mark.parametrize("body", ["data:image/png;base64,AAAA", "not base64", "AAA"])
def test_a_body_that_is_no_bare_base64_is_no_upload(body: str) -> None:

    with pytest.raises(Refused, match="ERROR_UPLOAD"):
        image_of(Fields((("method", "base64"), ("body", body))), SANDBOX.switches("image"))
