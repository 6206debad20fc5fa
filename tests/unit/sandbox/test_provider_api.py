from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest

from pytest_captcha_qa.sandbox import altcha, pictures
from pytest_captcha_qa.sandbox.accounts import KeyState
from pytest_captcha_qa.sandbox.audit import fingerprint

SITEKEY = "6LcSANDBOXv2sitekeyAAAAAAAAAAAAAAAAAAAAA"
GT = "5a9db0c4ca7a00000000000000000001"

SUBMITS = {
    "recaptcha_v2": {"method": "userrecaptcha", "googlekey": SITEKEY},
    "recaptcha_v2_invisible": {"method": "userrecaptcha", "googlekey": SITEKEY, "invisible": "1"},
    "recaptcha_v3": {"method": "userrecaptcha", "googlekey": SITEKEY, "version": "v3", "action": "contact"},
    "turnstile": {"method": "turnstile", "sitekey": SITEKEY, "action": "login", "data": "c1"},
    "recaptcha_enterprise": {"method": "userrecaptcha", "googlekey": SITEKEY, "enterprise": "1"},
    "hcaptcha": {"method": "hcaptcha", "sitekey": "10000000-5a9d-b0c4-ca7a-000000000001"},
    "geetest_v3": {"method": "geetest", "gt": GT, "challenge": "c" * 32},
    "geetest_v4": {"method": "geetest", "gt": GT, "version": "4"},
    "friendly_v2": {"method": "friendly_captcha", "sitekey": "FCMSANDBOX000001", "version": "v2"},
    "altcha": {"method": "altcha", "challenge_json": json.dumps(altcha.new_challenge("key", expires=2**40))},
    "image": {"method": "base64", "body": base64.b64encode(pictures.drawn("QATEST40817")).decode(), "pageurl": None},
}


@pytest.fixture
def submit(provider: Any, key: str, page: str) -> Any:
    def submit(type_: str = "turnstile", **changes: Any) -> Any:
        fields = {"key": key, "pageurl": page, "json": "1", **SUBMITS[type_], **changes}
        sent = {name: value for name, value in fields.items() if value is not None}
        reply = provider.post("/in.php", sent)
        return reply.json() if sent.get("json") == "1" else reply.text

    return submit


@pytest.fixture
def poll(provider: Any, key: str) -> Any:
    def poll(task_id: Any, **changes: Any) -> Any:
        fields = {"key": key, "action": "get", "id": task_id, "json": "1", **changes}
        sent = {name: value for name, value in fields.items() if value is not None}
        reply = provider.get("/res.php", sent)
        return reply.json() if sent.get("json") == "1" else reply.text

    return poll


def refusal(code: str) -> dict[str, Any]:
    return {"status": 0, "request": code}


@pytest.mark.parametrize("type_", SUBMITS)
def test_a_task_is_not_ready_until_its_time_and_then_solved(world: Any, submit: Any, poll: Any, type_: str) -> None:
    task_id = submit(type_)["request"]
    assert poll(task_id) == refusal("CAPCHA_NOT_READY")
    world.clock.advance(300)
    answer = poll(task_id)
    assert answer["status"] == 1
    assert poll(task_id) == answer
    assert world.audit.provider.tasks[str(task_id)].type == type_


@pytest.mark.parametrize("type_", SUBMITS)
def test_the_id_is_a_number_for_userrecaptcha_and_a_text_for_others(submit: Any, type_: str) -> None:
    task_id = submit(type_)["request"]
    assert isinstance(task_id, int if type_.startswith("recaptcha") else str)
    assert int(task_id) > 2**32


def test_plain_answers_follow_the_plain_grammar(world: Any, submit: Any, poll: Any) -> None:
    status, task_id = submit(json=None).split("|")
    assert status == "OK"
    assert poll(task_id, json="0") == "CAPCHA_NOT_READY"
    world.clock.advance(300)
    assert poll(task_id, json=None).startswith("OK|0.c4ptchaqaSANDBOX")
    assert submit(json=None, pageurl="") == "ERROR_PAGEURL"


def test_a_geetest_answer_is_an_object_in_json_and_pairs_in_plain(world: Any, submit: Any, poll: Any) -> None:
    task_id = submit("geetest_v3")["request"]
    world.clock.advance(300)
    parts = poll(task_id)["request"]
    assert parts["challenge"] == "c" * 32
    assert parts["seccode"] == parts["validate"] + "|jordan"
    assert poll(task_id, json=None) == "OK|" + ",".join(f"{name}:{value}" for name, value in parts.items())


def test_the_other_method_for_geetest_v4_gives_its_five_values(submit: Any, poll: Any, world: Any) -> None:
    task_id = submit("geetest_v4", method="geetest_v4", captcha_id=GT)["request"]
    world.clock.advance(300)
    parts = poll(task_id)["request"]
    assert set(parts) == {"captcha_id", "lot_number", "pass_token", "gen_time", "captcha_output"}
    assert parts["captcha_id"] == GT


def test_a_challenge_that_decides_its_answer_is_really_solved(submit: Any, poll: Any, world: Any) -> None:
    image, work = submit("image")["request"], submit("altcha")["request"]
    world.clock.advance(300)
    assert poll(image)["request"] == "QATEST40817"
    assert altcha.verified(poll(work)["request"], "key", now=time.time())


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"key": "short"}, "ERROR_WRONG_USER_KEY"),
        ({"key": None}, "ERROR_WRONG_USER_KEY"),
        ({"key": "0" * 32}, "ERROR_KEY_DOES_NOT_EXIST"),
        ({"method": "cuneiform"}, "ERROR_BAD_PARAMETERS"),
        ({"method": None}, "ERROR_BAD_PARAMETERS"),
        ({"sitekey": None}, "ERROR_BAD_PARAMETERS"),
        ({"sitekey": "no sitekey"}, "ERROR_BAD_PARAMETERS"),
        ({"pageurl": None}, "ERROR_PAGEURL"),
        ({"pageurl": "/login"}, "ERROR_PAGEURL"),
        ({"pageurl": "ftp://localhost/"}, "ERROR_PAGEURL"),
        ({"pageurl": "https://shop.example/login"}, "ERROR_PAGEURL"),
        ({"pageurl": "http://localhost.shop.example/"}, "ERROR_PAGEURL"),
        ({"pageurl": "http://[::1/"}, "ERROR_PAGEURL"),
    ],
)
def test_a_wrong_submit_is_refused_by_its_code(submit: Any, changes: dict[str, Any], code: str) -> None:
    assert submit("turnstile", **changes) == refusal(code)


@pytest.mark.parametrize(
    ("type_", "changes", "code"),
    [
        ("recaptcha_v2", {"googlekey": None}, "ERROR_WRONG_GOOGLEKEY"),
        ("recaptcha_v2", {"googlekey": ""}, "ERROR_GOOGLEKEY"),
        ("recaptcha_v3", {"googlekey": "x y"}, "ERROR_GOOGLEKEY"),
        ("recaptcha_v2", {"invisible": "2"}, "ERROR_BAD_PARAMETERS"),
        ("geetest_v3", {"challenge": None}, "ERROR_BAD_PARAMETERS"),
        ("geetest_v3", {"gt": "zz"}, "ERROR_BAD_PARAMETERS"),
        ("geetest_v3", {"version": "5"}, "ERROR_BAD_PARAMETERS"),
        ("friendly_v2", {"version": "v1"}, "ERROR_BAD_PARAMETERS"),
        ("altcha", {"challenge_json": None}, "ERROR_BAD_PARAMETERS"),
        ("altcha", {"challenge_json": "[]"}, "ERROR_BAD_PARAMETERS"),
        ("altcha", {"challenge_json": "{"}, "ERROR_BAD_PARAMETERS"),
        ("altcha", {"challenge_json": '{"algorithm":"ARGON2ID"}'}, "ERROR_CAPTCHA_UNSOLVABLE"),
        ("image", {"body": None}, "ERROR_BAD_PARAMETERS"),
        ("image", {"body": "!!"}, "ERROR_UPLOAD"),
        ("image", {"body": "QUJD"}, "ERROR_ZERO_CAPTCHA_FILESIZE"),
        ("image", {"body": "QUJD" * 201_000}, "ERROR_TOO_BIG_CAPTCHA_FILESIZE"),
        ("image", {"body": "QUJD" * 1000}, "ERROR_IMAGE_TYPE_NOT_SUPPORTED"),
    ],
)
def test_a_type_names_its_own_errors(submit: Any, type_: str, changes: dict[str, Any], code: str) -> None:
    assert submit(type_, **changes) == refusal(code)


@pytest.mark.parametrize("page", ["http://localhost/", "https://127.9.9.9:1/x", "http://[::1]:80/"])
def test_any_loopback_page_is_solved(submit: Any, page: str) -> None:
    assert submit(pageurl=page)["status"] == 1


@pytest.mark.parametrize(
    ("task_id", "code"),
    [
        ("1", "ERROR_WRONG_CAPTCHA_ID"),
        ("abc", "ERROR_WRONG_ID_FORMAT"),
        ("١٢", "ERROR_WRONG_ID_FORMAT"),
        (None, "ERROR_WRONG_ID_FORMAT"),
    ],
)
def test_a_wrong_id_is_refused_by_its_code(poll: Any, task_id: str | None, code: str) -> None:
    assert poll(task_id) == refusal(code)


def test_a_task_of_another_key_does_not_exist(submit: Any, poll: Any) -> None:
    assert poll(submit()["request"], key="b" * 32) == refusal("ERROR_WRONG_CAPTCHA_ID")


def test_the_key_is_checked_before_the_action(poll: Any) -> None:
    assert poll("1", key="short", action=None) == refusal("ERROR_WRONG_USER_KEY")
    assert poll("1", action=None) == refusal("ERROR_EMPTY_ACTION")
    assert poll("1", action="dance") == refusal("ERROR_BAD_PARAMETERS")


def test_a_key_without_money_is_refused(world: Any, submit: Any, key: str) -> None:
    world.provider.keys[key] = KeyState(balance=0)
    assert submit() == refusal("ERROR_ZERO_BALANCE")


def test_a_key_without_a_free_thread_is_refused_until_a_task_ends(world: Any, submit: Any, key: str) -> None:
    world.provider.keys[key] = KeyState(threads=1)
    assert submit()["status"] == 1
    assert submit() == refusal("ERROR_ZERO_BALANCE")
    assert submit(key="b" * 32)["status"] == 1
    world.clock.advance(300)
    assert submit()["status"] == 1


def test_the_balance_is_a_bare_number_and_a_text_in_json(world: Any, poll: Any, key: str) -> None:
    world.provider.keys[key] = KeyState(balance=2.5)
    assert poll(None, action="getbalance") == {"status": 1, "request": "2.50000"}
    assert poll(None, action="getbalance", json=None) == "2.50000"


def test_threads_are_counted_while_tasks_are_solved(world: Any, submit: Any, provider: Any, key: str) -> None:
    world.provider.keys[key] = KeyState(threads=7)
    submit()
    answer = provider.post("/res.php", {"key": key, "action": "threadsinfo", "json": "1"}).json()
    assert (answer["threads"], answer["working_threads"]) == ("7", "1")


def test_the_token_is_bound_to_what_was_submitted(world: Any, submit: Any, poll: Any, page: str) -> None:
    task_id = submit("turnstile")["request"]
    world.clock.advance(300)
    binding = world.registry.find(poll(task_id)["request"]).binding
    assert (binding.type, binding.sitekey, binding.page) == ("turnstile", SITEKEY, page)
    assert (binding.action, binding.cdata) == ("login", "c1")


def test_the_life_of_a_token_counts_from_the_end_of_the_solve(world: Any, submit: Any, poll: Any) -> None:
    task_id = submit("turnstile")["request"]
    ready_at = world.work.tasks[task_id].ready_at
    world.clock.advance(1000)
    assert world.registry.find(poll(task_id)["request"]).expires_at == ready_at + 300


def test_v3_without_an_action_is_solved_for_verify(world: Any, submit: Any, poll: Any) -> None:
    task_id = submit("recaptcha_v3", action=None)["request"]
    world.clock.advance(300)
    assert world.registry.find(poll(task_id)["request"]).binding.action == "verify"


def test_solve_times_are_scaled(world: Any, submit: Any, poll: Any) -> None:
    world.work.time_scale = 0
    assert poll(submit()["request"])["status"] == 1


def test_a_spent_challenge_gets_no_second_token(world: Any, submit: Any, poll: Any) -> None:
    first, second = submit("geetest_v3")["request"], submit("geetest_v3")["request"]
    world.clock.advance(300)
    assert poll(first)["status"] == 1
    assert poll(second) == refusal("ERROR_TOKEN_EXPIRED")


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b"{"),
        ("application/json", b"[]"),
        ("application/json", b"[" * 100_000),
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data\r\n\r\nb\r\n--x--\r\n"),
    ],
)
def test_an_unreadable_body_is_a_bad_parameter(provider: Any, content_type: str, body: bytes) -> None:
    headers = {"content-type": content_type}
    reply = provider.call("POST", "/in.php", params={"json": "1"}, body=body, headers=headers)
    assert (reply.status, reply.json()) == (200, refusal("ERROR_BAD_PARAMETERS"))


@pytest.mark.parametrize("encoding", ["query", "form", "json", "multipart"])
def test_parameters_are_read_in_every_encoding(provider: Any, key: str, page: str, encoding: str) -> None:
    fields = {"key": key, "pageurl": page, "json": "1", **SUBMITS["turnstile"]}
    parts = [f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n' for name, text in fields.items()]
    headers = {"content-type": "multipart/form-data; boundary=x"}
    replies = {
        "query": lambda: provider.get("/in.php", fields),
        "form": lambda: provider.post("/in.php", fields),
        "json": lambda: provider.post_json("/in.php", {**fields, "json": 1, "action": None}),
        "multipart": lambda: provider.call(
            "POST", "/in.php", body=("".join(parts) + "--x--\r\n").encode(), headers=headers
        ),
    }
    assert replies[encoding]().json()["status"] == 1


def test_a_lone_surrogate_breaks_no_answer(world: Any, provider: Any, key: str, page: str) -> None:
    fields = {"key": key, "pageurl": page, "json": 1, **SUBMITS["geetest_v3"], "challenge": "\ud800"}
    task_id = provider.post_json("/in.php", fields).json()["request"]
    world.clock.advance(300)
    reply = provider.get("/res.php", {"key": key, "action": "get", "id": task_id, "json": "1"})
    assert reply.json()["request"]["challenge"] == "?"


def test_calls_are_counted_by_key_and_task_without_naming_the_key(world: Any, submit: Any, poll: Any, key: str) -> None:
    task_id = submit()["request"]
    poll(task_id)
    world.clock.advance(300)
    poll(task_id)
    counts = world.audit.provider.snapshot()
    assert (counts["submits"], counts["polls"], counts["reads"]) == (1, 2, 1)
    traffic = {"submits": 1, "polls": 2, "reads": 1, "reports_good": 0, "reports_bad": 0}
    assert list(counts["by_key"].values()) == [{**traffic, "peak": 1}]
    about = {"key": fingerprint(key), "type": "turnstile", "state": "read"}
    assert counts["tasks"][task_id] == {**traffic, **about}
    assert key not in str(counts)


@pytest.mark.parametrize("path", ["/in.php", "/res.php"])
def test_an_error_answer_strikes_its_path_only(world: Any, submit: Any, poll: Any, path: str) -> None:
    task_id = submit()["request"]
    world.faults.load({"provider": [{"kind": "error", "code": "ERROR_NO_SLOT_AVAILABLE", "path": path, "count": 1}]})
    struck = refusal("ERROR_NO_SLOT_AVAILABLE")
    assert (submit() == struck) is (path == "/in.php")
    assert (poll(task_id) == struck) is (path == "/res.php")
    assert submit()["status"] == 1


def test_the_fate_of_a_task_is_decided_when_it_is_submitted(world: Any, submit: Any, poll: Any) -> None:
    world.faults.load({"provider": [{"kind": "not_ready_forever", "count": 1}, {"kind": "unsolvable", "count": 1}]})
    stuck, doomed, fine = (submit()["request"] for _ in range(3))
    world.faults.clear()
    assert poll(doomed) == refusal("CAPCHA_NOT_READY")
    world.clock.advance(10_000)
    assert poll(stuck) == refusal("CAPCHA_NOT_READY")
    assert poll(doomed) == refusal("ERROR_CAPTCHA_UNSOLVABLE")
    assert poll(fine)["status"] == 1


def test_an_answer_can_be_limited_to_the_tasks_of_one_form(world: Any, submit: Any, poll: Any) -> None:
    world.faults.load({"provider": [{"kind": "unsolvable", "form": "login"}]})
    other, login = submit()["request"], submit(pageurl="http://localhost/login")["request"]
    world.clock.advance(300)
    assert poll(other)["status"] == 1
    assert poll(login) == refusal("ERROR_CAPTCHA_UNSOLVABLE")


def test_a_slow_task_takes_so_many_times_as_long(world: Any, submit: Any, poll: Any) -> None:
    world.faults.load({"provider": [{"kind": "slow", "factor": 100, "count": 1}]})
    slow, usual = (submit()["request"] for _ in range(2))
    world.clock.advance(100)
    assert [poll(task)["status"] for task in (slow, usual)] == [0, 1]
    world.clock.advance(100_000)
    assert poll(slow)["status"] == 1
