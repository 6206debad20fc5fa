from __future__ import annotations

import hashlib
from typing import Any

import pytest

from pytest_captcha_qa.sandbox import keys, official
from pytest_captcha_qa.sandbox.audit import fingerprint

GOOGLE = "/recaptcha/api/siteverify"
CLOUDFLARE = "/turnstile/v0/siteverify"
HCAPTCHA = "/siteverify"
V2, V3, TURNSTILE, GEETEST = keys.RECAPTCHA_V2, keys.RECAPTCHA_V3, keys.TURNSTILE, keys.GEETEST_V3


def refusal(*codes: str) -> dict[str, Any]:
    return {"success": False, "error-codes": list(codes)}


@pytest.mark.parametrize("type_", ["recaptcha_v2", "recaptcha_v2_invisible"])
def test_v2_success_has_no_error_codes_and_no_score(world: Any, vendor: Any, type_: str) -> None:
    token = world.issue(type_, V2.sitekey)
    reply = vendor.post(GOOGLE, {"secret": V2.secret, "response": token}).json()
    assert reply.keys() == {"success", "challenge_ts", "hostname"}
    assert (reply["success"], reply["hostname"]) == (True, "127.0.0.1")


def test_v3_success_adds_score_and_action(world: Any, vendor: Any) -> None:
    token = world.issue("recaptcha_v3", V3.sitekey, action="contact")
    reply = vendor.get(GOOGLE, {"secret": V3.secret, "response": token}).json()
    assert (reply["success"], reply["score"], reply["action"]) == (True, 0.9, "contact")


def test_v3_gives_the_score_that_is_switched_on(world: Any, vendor: Any) -> None:
    world.faults.load({"vendor": [{"kind": "score", "score": 0.1, "count": 1}]})
    tokens = [world.issue("recaptcha_v3", V3.sitekey) for _ in range(2)]
    replies = [vendor.post(GOOGLE, {"secret": V3.secret, "response": token}).json() for token in tokens]
    assert [(reply["success"], reply["score"]) for reply in replies] == [(True, 0.1), (True, 0.9)]


def test_turnstile_success_has_an_empty_list_of_error_codes(world: Any, vendor: Any) -> None:
    token = world.issue("turnstile", TURNSTILE.sitekey, action="login", cdata="c1")
    reply = vendor.post_json(CLOUDFLARE, {"secret": TURNSTILE.secret, "response": token}).json()
    assert (reply["success"], reply["error-codes"]) == (True, [])
    assert (reply["action"], reply["cdata"], reply["metadata"]) == ("login", "c1", {"interactive": False})


@pytest.mark.parametrize(
    ("endpoint", "type_", "pair"), [(GOOGLE, "recaptcha_v2", V2), (CLOUDFLARE, "turnstile", TURNSTILE)]
)
class TestBothSiteverifies:
    def test_a_replay_is_a_duplicate(
        self, world: Any, vendor: Any, endpoint: str, type_: str, pair: keys.KeyPair
    ) -> None:
        call = {"secret": pair.secret, "response": world.issue(type_, pair.sitekey)}
        assert vendor.post(endpoint, call).json()["success"] is True
        assert vendor.post(endpoint, call).json() == refusal("timeout-or-duplicate")

    def test_an_expired_token_has_the_same_code(
        self, world: Any, vendor: Any, endpoint: str, type_: str, pair: keys.KeyPair
    ) -> None:
        call = {"secret": pair.secret, "response": world.issue(type_, pair.sitekey)}
        world.clock.advance(301)
        assert vendor.post(endpoint, call).json() == refusal("timeout-or-duplicate")

    def test_an_invented_token_is_invalid(
        self, world: Any, vendor: Any, endpoint: str, type_: str, pair: keys.KeyPair
    ) -> None:
        call = {"secret": pair.secret, "response": "03AFcWeAc4ptchaqaSANDBOXinvented"}
        assert vendor.post(endpoint, call).json() == refusal("invalid-input-response")

    def test_a_demo_secret_refuses_a_token_of_another_sitekey(
        self, world: Any, vendor: Any, endpoint: str, type_: str, pair: keys.KeyPair
    ) -> None:
        call = {"secret": pair.secret, "response": world.issue(type_, "another-sitekey")}
        assert vendor.post(endpoint, call).json() == refusal("invalid-input-response")

    def test_a_secret_of_somebody_else_verifies_any_token(
        self, world: Any, vendor: Any, endpoint: str, type_: str, pair: keys.KeyPair
    ) -> None:
        call = {"secret": "their own secret", "response": world.issue(type_, "their-sitekey")}
        assert vendor.post(endpoint, call).json()["success"] is True
        assert world.audit.vendor.by_secret == {fingerprint("their own secret"): 1}

    def test_missing_inputs_are_named(
        self, world: Any, vendor: Any, endpoint: str, type_: str, pair: keys.KeyPair
    ) -> None:
        assert vendor.post(endpoint, {"response": "x"}).json() == refusal("missing-input-secret")
        assert vendor.post(endpoint, {"secret": "x"}).json() == refusal("missing-input-response")
        assert vendor.post(endpoint).json() == refusal("missing-input-secret", "missing-input-response")

    def test_a_retired_secret_is_invalid_and_spends_no_token(
        self, world: Any, vendor: Any, endpoint: str, type_: str, pair: keys.KeyPair
    ) -> None:
        token = world.issue(type_, pair.sitekey)
        call = {"secret": keys.RETIRED_SECRET, "response": token}
        assert vendor.post(endpoint, call).json() == refusal("invalid-input-secret")
        assert vendor.post(endpoint, {**call, "secret": pair.secret}).json()["success"] is True

    def test_an_unreadable_body_is_a_bad_request(
        self, world: Any, vendor: Any, endpoint: str, type_: str, pair: keys.KeyPair
    ) -> None:
        headers = {"content-type": "application/json"}
        assert vendor.call("POST", endpoint, body=b"{", headers=headers).json() == refusal("bad-request")

    def test_the_token_of_another_vendor_is_invalid(
        self, world: Any, vendor: Any, endpoint: str, type_: str, pair: keys.KeyPair
    ) -> None:
        call = {"secret": pair.secret, "response": world.issue("geetest_v3", pair.sitekey)}
        assert vendor.post(endpoint, call).json() == refusal("invalid-input-response")


def test_google_refuses_a_repeated_parameter_and_spends_no_token(world: Any, vendor: Any) -> None:
    token = world.issue("recaptcha_v2", V2.sitekey)
    call = [("secret", V2.secret), ("response", token)]
    assert vendor.post(GOOGLE, [*call, ("response", "x")]).json() == refusal("bad-request")
    assert vendor.post(GOOGLE, call, params={"secret": "x"}).json() == refusal("bad-request")
    assert vendor.post(GOOGLE, call).json()["success"] is True


def test_an_idempotency_key_lets_a_turnstile_check_be_repeated(world: Any, vendor: Any) -> None:
    token = world.issue("turnstile", TURNSTILE.sitekey)
    call = {
        "secret": TURNSTILE.secret,
        "response": token,
        "idempotency_key": "6f1c6ad0-8c5b-4d8e-b5d0-000000000001",
    }
    assert vendor.post(CLOUDFLARE, call).json()["success"] is True
    assert vendor.post(CLOUDFLARE, call).json()["success"] is True
    assert vendor.post(CLOUDFLARE, {**call, "idempotency_key": "another"}).json()["success"] is False


def test_turnstile_is_posted_to(vendor: Any) -> None:
    assert vendor.get(CLOUDFLARE).status == 405


def test_geetest_registers_a_fresh_challenge_each_time(vendor: Any) -> None:
    call = {"gt": GEETEST.sitekey, "json_format": "1"}
    challenges = {vendor.get("/register.php", call).json()["challenge"] for _ in range(3)}
    assert len(challenges) == 3
    assert {len(challenge) for challenge in challenges} == {32}
    assert len(vendor.get("/register.php", {"gt": GEETEST.sitekey}).text) == 32
    assert vendor.get("/register.php", {"gt": "nonsense", "json_format": "1"}).json() == {"challenge": 0}


def solution(world: Any, **changes: str) -> dict[str, str]:
    validate = world.issue("geetest_v3", GEETEST.sitekey, challenge="c" * 32)
    call = {"seccode": f"{validate}|jordan", "challenge": "c" * 32, "captchaid": GEETEST.sitekey}
    return {**call, "json_format": "1", **changes}


def test_geetest_confirms_a_solution_once_by_the_hash_of_its_seccode(world: Any, vendor: Any) -> None:
    call = solution(world)
    digest = hashlib.md5(call["seccode"].encode(), usedforsecurity=False).hexdigest()
    assert vendor.post("/validate.php", call).json() == {"seccode": digest}
    assert vendor.post("/validate.php", call).json() == {"seccode": "false"}


def test_geetest_answers_plainly_unless_asked_for_json(world: Any, vendor: Any) -> None:
    assert len(vendor.post("/validate.php", solution(world, json_format="0")).text) == 32
    assert vendor.post("/validate.php").text == "false"


@pytest.mark.parametrize(
    "changes",
    [
        {"challenge": "d" * 32},
        {"captchaid": "5a9db0c4ca7a00000000000000000002"},
        {"seccode": "5a9db0c4ca7a00000000000000000000|jordan"},
        {"seccode": ""},
    ],
)
def test_geetest_refuses_a_solution_that_does_not_belong_together(
    world: Any, vendor: Any, changes: dict[str, str]
) -> None:
    assert vendor.post("/validate.php", solution(world, **changes)).json() == {"seccode": "false"}


def test_geetest_refuses_a_seccode_without_its_suffix(world: Any, vendor: Any) -> None:
    call = solution(world)
    bare = {**call, "seccode": call["seccode"].removesuffix("|jordan")}
    assert vendor.post("/validate.php", bare).json() == {"seccode": "false"}


def test_calls_and_verdicts_are_counted_without_naming_secret_or_token(world: Any, vendor: Any) -> None:
    token = world.issue("recaptcha_v2", V2.sitekey)
    for _ in range(2):
        vendor.post(GOOGLE, {"secret": V2.secret, "response": token})
    vendor.get("/register.php", {"gt": GEETEST.sitekey})
    counts = world.audit.vendor.snapshot()
    assert (counts["calls"], counts["accepted"], counts["refused"]) == (3, 1, 1)
    assert counts["by_endpoint"] == {GOOGLE: 2, "/register.php": 1}
    assert counts["errors"] == {"timeout-or-duplicate": 1}
    assert token not in str(counts)
    assert V2.secret not in str(counts)


@pytest.fixture
def hcaptcha(world: Any, vendor: Any) -> Any:
    def ask(token: str | None = None, **changes: str) -> Any:
        text = world.issue("hcaptcha", keys.HCAPTCHA.sitekey) if token is None else token
        return vendor.post(HCAPTCHA, {"secret": keys.HCAPTCHA.secret, "response": text, **changes}).json()

    return ask


def test_hcaptcha_names_the_host(hcaptcha: Any) -> None:
    reply = hcaptcha()
    assert (reply["success"], reply["hostname"], reply["credit"]) == (True, "127.0.0.1", False)


def test_hcaptcha_has_two_codes_where_others_have_one(world: Any, hcaptcha: Any) -> None:
    used = world.issue("hcaptcha", keys.HCAPTCHA.sitekey)
    hcaptcha(used)
    old = world.issue("hcaptcha", keys.HCAPTCHA.sitekey)
    assert hcaptcha(used)["error-codes"] == ["already-seen-response"]
    world.clock.advance(121)
    assert hcaptcha(old)["error-codes"] == ["expired-input-response"]


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({"secret": ""}, ["missing-input-secret"]),
        ({"response": ""}, ["missing-input-response"]),
        ({"secret": keys.RETIRED_SECRET}, ["invalid-input-secret"]),
        ({"response": "P1_made-up"}, ["invalid-input-response"]),
        ({"sitekey": "another-sitekey"}, ["sitekey-secret-mismatch"]),
        ({"secret": "of-somebody", "sitekey": "another-sitekey"}, ["sitekey-secret-mismatch"]),
        ({"secret": official.HCAPTCHA.secret}, ["not-using-dummy-passcode"]),
    ],
)
def test_hcaptcha_refuses_by_its_codes(hcaptcha: Any, changes: dict[str, str], codes: list[str]) -> None:
    assert hcaptcha(**changes)["error-codes"] == codes


def test_hcaptcha_reads_no_json(world: Any, vendor: Any) -> None:
    call = {"secret": keys.HCAPTCHA.secret, "response": world.issue("hcaptcha", keys.HCAPTCHA.sitekey)}
    assert vendor.post_json(HCAPTCHA, call).json()["error-codes"] == ["bad-request"]
