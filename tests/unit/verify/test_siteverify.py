"""What the vendor is asked, and how its answer is judged."""

from __future__ import annotations

import hmac
import json
from urllib.parse import parse_qsl

import pytest

from pytest_captcha_qa.errors import ConfigError, ScopeDenied, TransportError, VerifierError
from pytest_captcha_qa.model.attempt import VerifyStatus
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.scope import TokenSource
from pytest_captcha_qa.verify.siteverify import SiteVerifier
from pytest_captcha_qa.verify.vendors import VENDORS

V2 = CaptchaType.RECAPTCHA_V2
V3 = CaptchaType.RECAPTCHA_V3
TURNSTILE = CaptchaType.TURNSTILE
HCAPTCHA = CaptchaType.HCAPTCHA
GEETEST = CaptchaType.GEETEST_V3
GEETEST_V4 = CaptchaType.GEETEST_V4
FRIENDLY = CaptchaType.FRIENDLY_V2
ENTERPRISE = CaptchaType.RECAPTCHA_ENTERPRISE
SECRET = "the-teams-secret"
TOKEN = Solution({"token": "the-token"})
HASH = "0" * 32


@pytest.fixture
def verify(client, spec, challenge, grants, deadline):
    """Verify a token of a type; keywords go to the form's configuration."""

    def verify_it(
        kind=TURNSTILE, *, solution=TOKEN, source=TokenSource.LIVE, stand_in=None, page=None, secret=SECRET, **form
    ):
        verifier = SiteVerifier(client, secret=lambda: secret, source=source, stand_in=stand_in)
        shown = challenge(kind, **(page or {}))
        return verifier.verify(spec(kind, **form), shown, solution, {}, grants, deadline)

    return verify_it


def test_every_type_has_a_vendor_or_an_explicit_none():
    assert set(VENDORS) == set(CaptchaType)


@pytest.mark.parametrize(
    ("kind", "endpoint", "fields"),
    [
        (
            V2,
            "https://www.google.com/recaptcha/api/siteverify",
            {"secret": SECRET, "response": "the-token"},
        ),
        (
            CaptchaType.RECAPTCHA_V2_INVISIBLE,
            "https://www.google.com/recaptcha/api/siteverify",
            {"secret": SECRET, "response": "the-token"},
        ),
        (
            TURNSTILE,
            "https://challenges.cloudflare.com/turnstile/v0/siteverify",
            {"secret": SECRET, "response": "the-token"},
        ),
        (
            HCAPTCHA,
            "https://api.hcaptcha.com/siteverify",
            {"secret": SECRET, "response": "the-token", "sitekey": "site-key-1"},
        ),
    ],
)
def test_each_vendor_is_asked_as_it_documents(client, verify, kind, endpoint, fields):
    client.will({"success": True})

    assert verify(kind).status is VerifyStatus.PASS
    method, url, grant, payload = client.asked[0]
    assert (method, url, grant) == ("POST", endpoint, None)
    assert payload.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert dict(parse_qsl(client.body)) == fields


@pytest.mark.parametrize(("seccode", "status"), [(HASH, VerifyStatus.PASS), ("false", VerifyStatus.FAIL)])
def test_geetest_is_asked_without_a_secret(client, verify, seccode, status):
    client.will({"seccode": seccode})
    solution = Solution({"challenge": "c", "validate": "v", "seccode": "v|jordan"})

    assert verify(GEETEST, solution=solution).status is status
    assert client.asked[0][1] == "https://api.geetest.com/validate.php"
    assert dict(parse_qsl(client.body)) == {
        "seccode": "v|jordan",
        "challenge": "c",
        "captchaid": "site-key-1",
        "json_format": "1",
    }


V4_SOLUTION = Solution(
    {"captcha_id": "x", "lot_number": "lot", "pass_token": "pass", "gen_time": "17", "captcha_output": "out="}
)


def test_geetest_v4_is_sent_the_solution_signed_with_the_key_of_the_site(client, verify):
    client.will({"status": "success", "result": "success", "reason": "", "captcha_args": {}})

    assert verify(GEETEST_V4, solution=V4_SOLUTION).status is VerifyStatus.PASS
    assert client.asked[0][1] == "https://gcaptcha4.geetest.com/validate?captcha_id=site-key-1"
    assert dict(parse_qsl(client.body)) == {
        "lot_number": "lot",
        "pass_token": "pass",
        "gen_time": "17",
        "captcha_output": "out=",
        "captcha_id": "site-key-1",
        "sign_token": hmac.new(SECRET.encode(), b"lot", "sha256").hexdigest(),
    }


def test_friendly_gets_its_key_in_a_header(client, verify):
    client.will({"success": True, "data": {"challenge": {"origin": "https://shop.example"}}})

    assert verify(FRIENDLY).status is VerifyStatus.PASS
    _, url, _, payload = client.asked[0]
    assert url == "https://global.frcapi.com/api/v2/captcha/siteverify"
    assert (payload.headers["X-API-Key"], payload.headers["Content-Type"]) == (SECRET, "application/json")
    assert json.loads(client.body) == {"response": "the-token", "sitekey": "site-key-1"}


def test_enterprise_is_asked_for_an_assessment_and_its_key_stands_in_no_address(client, verify):
    client.will(ASSESSMENT)

    assert verify(ENTERPRISE, secret=f"my-project/{SECRET}", page={"action": "signup"}).status is VerifyStatus.PASS
    _, url, _, payload = client.asked[0]
    assert url == "https://recaptchaenterprise.googleapis.com/v1/projects/my-project/assessments"
    assert payload.headers["X-Goog-Api-Key"] == SECRET
    assert json.loads(client.body) == {
        "event": {"token": "the-token", "siteKey": "site-key-1", "expectedAction": "signup"}
    }


@pytest.mark.parametrize("secret", [SECRET, "/key", "my project/key", "my-project/", "../key"])
def test_enterprise_needs_project_and_key_as_its_secret(client, verify, secret):
    with pytest.raises(ConfigError, match="must be PROJECT/API_KEY"):
        verify(ENTERPRISE, secret=secret)
    assert client.asked == []


ASSESSMENT = {
    "tokenProperties": {"valid": True, "action": "signup", "hostname": "shop.example"},
    "riskAnalysis": {"score": 0.7, "reasons": []},
}


@pytest.mark.parametrize(
    ("kind", "answer", "status", "codes"),
    [
        (
            "geetest_v4",
            {"status": "success", "result": "fail", "reason": "pass_token expire"},
            200,
            "pass_token_expire",
        ),
        ("geetest_v4", {"status": "error", "code": "-50003", "msg": "repeated"}, 200, "-50003"),
        ("friendly_v2", {"success": False, "error": {"error_code": "response_duplicate"}}, 200, "response_duplicate"),
        ("friendly_v2", {"success": False, "error": {"error_code": "response_missing"}}, 400, "response_missing"),
        ("recaptcha_enterprise", {"tokenProperties": {"valid": False, "invalidReason": "DUPE"}}, 200, "dupe"),
    ],
)
def test_each_vendor_refuses_in_its_own_words(client, verify, kind, answer, status, codes):
    client.will(answer, status=status)
    solution = V4_SOLUTION if kind == "geetest_v4" else TOKEN
    verdict = verify(CaptchaType(kind), solution=solution, secret="project/key")

    assert (verdict.status, verdict.codes) == (VerifyStatus.FAIL, (codes,))


@pytest.mark.parametrize(
    ("kind", "answer", "status"),
    [
        ("friendly_v2", {"success": False, "error": {"error_code": "auth_invalid"}}, 401),
        ("recaptcha_enterprise", {"error": {"code": 403, "status": "PERMISSION_DENIED"}}, 403),
    ],
)
def test_a_refused_key_is_a_matter_of_configuration(client, verify, kind, answer, status):
    client.will(answer, status=status)

    with pytest.raises(ConfigError, match="refuses the secret"):
        verify(CaptchaType(kind), secret="project/key")


@pytest.mark.parametrize(
    ("kind", "answer", "status"),
    [
        ("geetest_v4", {"status": "error", "code": "-50103"}, 200),
        ("geetest_v4", {"status": "success"}, 200),
        ("geetest_v4", [], 200),
        ("friendly_v2", {"success": False, "error": {"error_code": "sitekey_invalid"}}, 400),
        ("friendly_v2", {"success": "yes"}, 200),
        ("friendly_v2", {"success": True, "data": {"challenge": {"origin": "http://["}}}, 200),
        ("recaptcha_enterprise", {"error": {"status": "INVALID_ARGUMENT"}}, 400),
        ("recaptcha_enterprise", {"tokenProperties": {"valid": "true"}}, 200),
        ("recaptcha_enterprise", {"tokenProperties": []}, 200),
    ],
)
def test_what_judges_no_token_is_no_verdict(client, verify, kind, answer, status):
    client.will(answer, status=status)

    with pytest.raises(VerifierError):
        verify(CaptchaType(kind), solution=V4_SOLUTION if kind == "geetest_v4" else TOKEN, secret="project/key")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"riskAnalysis": {"score": 0.2}}, "the score is 0.2, at least 0.5 is expected"),
        ({"riskAnalysis": {}}, "Google gives no score"),
        ({"tokenProperties": {"valid": True}}, "Google names no action"),
        ({"tokenProperties": {"valid": True, "action": "other"}}, "for action 'other', expected is 'signup'"),
        ({"tokenProperties": {"valid": True, "action": "signup", "hostname": "x.example"}}, "solved on 'x.example'"),
    ],
)
def test_an_assessment_is_compared_with_action_score_and_host(client, verify, change, reason):
    client.will({**ASSESSMENT, **change})
    verdict = verify(ENTERPRISE, secret="project/key", action="signup", min_score=0.5)

    assert verdict.status is (VerifyStatus.FAIL if reason else VerifyStatus.PASS)
    assert (reason or "accepts the token") in verdict.reason


@pytest.mark.parametrize("codes", [[], ["timeout-or-duplicate"], ["invalid-input-response", "timeout-or-duplicate"]])
def test_a_refused_token_fails_with_the_vendors_codes(client, verify, codes):
    client.will({"success": False, "error-codes": codes})
    verdict = verify()

    assert (verdict.status, verdict.codes, verdict.http_status) == (VerifyStatus.FAIL, tuple(codes), 200)
    assert verdict.reason.startswith("Cloudflare refuses the token")


def test_only_what_looks_like_a_code_is_repeated(client, verify):
    client.will({"success": False, "error-codes": ["<b>no</b>", 7, None, "x" * 99, "bad-token"]})

    assert verify().codes == ("bad-token",)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ({"success": "true"}, 200),
        ({"success": 1}, 200),
        ({"success": None}, 200),
        ({}, 200),
        ([], 200),
        (None, 200),
        ("", 200),
        ("<html>busy</html>", 200),
        ("[" * 100_000, 200),
        ({"success": True}, 500),
        ({"success": False}, 502),
        ({"success": True}, 404),
        ({"success": True}, 302),
        ({"success": False, "error-codes": ["internal-error"]}, 200),
        ({"success": False, "error-codes": ["bad-request"]}, 400),
    ],
)
def test_anything_but_a_documented_answer_is_no_verdict(client, verify, answer, status):
    client.will(answer, status=status)

    with pytest.raises(VerifierError, match="Cloudflare did not"):
        verify()


@pytest.mark.parametrize("seccode", [True, "true", "", None, "success"])
def test_geetest_answers_with_a_hash_or_false_only(client, verify, seccode):
    client.will({"seccode": seccode})

    with pytest.raises(VerifierError):
        verify(GEETEST)


@pytest.mark.parametrize("code", ["invalid-input-secret", "missing-input-secret", "sitekey-secret-mismatch"])
def test_a_refused_secret_is_a_matter_of_configuration(client, verify, code):
    client.will({"success": False, "error-codes": [code]})

    with pytest.raises(ConfigError, match=f"refuses the secret \\({code}\\)") as caught:
        verify()
    assert SECRET not in str(caught.value)


def test_a_vendor_that_cannot_be_reached_is_a_verifier_error(client, verify):
    client.answers.append(TransportError("POST https://x/: refused", kind="refused", sent=False))

    with pytest.raises(VerifierError, match="Cloudflare could not be asked about the token"):
        verify()


_V3_GOOD = {"success": True, "score": 0.7, "action": "signup", "hostname": "shop.example"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"score": 0.5}, None),
        ({"hostname": None}, None),
        ({"hostname": "SHOP.example"}, None),
        ({"score": 0.49}, "the score is 0.49, at least 0.5 is expected"),
        ({"score": float("nan")}, "the score is nan"),
        ({"score": True}, "Google gives no score"),
        ({"score": "0.9"}, "Google gives no score"),
        ({"score": None}, "Google gives no score"),
        ({"score": 10**400}, "Google gives no score"),
        ({"action": "login"}, "the token is for action 'login', expected is 'signup'"),
        ({"action": None}, "Google names no action"),
        ({"hostname": "evil.example"}, "solved on 'evil.example', the page is on shop.example"),
        ({"success": False}, "Google refuses the token"),
    ],
)
def test_what_the_vendor_leaves_to_the_site_is_compared(client, verify, change, reason):
    client.will({**_V3_GOOD, **change})
    verdict = verify(V3, action="signup", min_score=0.5)

    assert verdict.status is (VerifyStatus.FAIL if reason else VerifyStatus.PASS)
    assert (reason or "accepts the token") in verdict.reason


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        ({"score": 0.1}, ("low-score",)),
        ({"score": None}, ("low-score",)),
        ({"score": 0.1, "action": "login"}, ()),
        ({"success": False, "error-codes": ["timeout-or-duplicate"], "score": 0.1}, ("timeout-or-duplicate",)),
    ],
    ids=["low", "none", "low and another action", "refused"],
)
def test_a_token_that_is_refused_for_its_score_alone_says_so(client, verify, change, codes):
    client.will({**_V3_GOOD, **change})

    assert verify(V3, action="signup", min_score=0.5).codes == codes


def test_the_action_of_the_page_is_expected_when_none_is_configured(client, verify):
    client.will({"success": True, "action": "other"})

    assert verify(page={"action": "login"}).status is VerifyStatus.FAIL


def test_turnstile_may_leave_the_action_out(client, verify):
    client.will({"success": True, "error-codes": []})

    assert verify(page={"action": "login"}).status is VerifyStatus.PASS


def test_official_test_keys_name_their_own_host_and_no_score(client, verify):
    client.will({"success": True, "hostname": "testkey.google.com"})

    assert verify(V3, source=TokenSource.TESTKEYS, action="signup", min_score=0.9).status is VerifyStatus.PASS


@pytest.mark.parametrize("source", [TokenSource.SANDBOX, TokenSource.STANDIN])
def test_marked_tokens_never_leave_for_a_real_vendor(client, verify, source):
    client.will({"success": True})

    with pytest.raises(ConfigError, match=r"never sent to Cloudflare.*verify.url_env"):
        verify(source=source)
    assert client.asked == []


@pytest.mark.parametrize(
    ("stand_in", "source", "asked"),
    [
        ("http://127.0.0.1:8700", TokenSource.SANDBOX, "http://127.0.0.1:8700/turnstile/v0/siteverify"),
        ("http://127.0.0.1:8700/", TokenSource.SANDBOX, "http://127.0.0.1:8700/turnstile/v0/siteverify"),
        ("https://fake.shop.example/verify", TokenSource.STANDIN, "https://fake.shop.example/verify"),
    ],
)
def test_a_stand_in_is_asked_in_the_vendors_place(client, verify, stand_in, source, asked):
    client.will({"success": True})
    verify(source=source, stand_in=stand_in)

    assert client.asked[0][1] == asked


@pytest.mark.parametrize("stand_in", ["https://fake.shop.example/verify", "http://127.0.0.1.shop.example/"])
def test_a_token_of_the_sandbox_stays_on_this_machine(client, verify, stand_in):
    with pytest.raises(ScopeDenied, match="stay on this machine") as denied:
        verify(source=TokenSource.SANDBOX, stand_in=stand_in)

    assert denied.value.reason == "sandbox_not_loopback"
    assert client.asked == []


@pytest.mark.parametrize("stand_in", ["", "ftp://127.0.0.1/", "http://user@127.0.0.1/", "127.0.0.1:8700"])
def test_a_stand_in_needs_a_web_address(client, verify, stand_in):
    with pytest.raises(ConfigError, match=r"verify\.url_env holds is refused"):
        verify(stand_in=stand_in)
    assert client.asked == []


@pytest.mark.parametrize(("kind", "solution"), [(CaptchaType.ALTCHA, TOKEN), (TURNSTILE, None)])
def test_nothing_to_ask_about_is_a_configuration_error(client, verify, kind, solution):
    with pytest.raises(ConfigError):
        verify(kind, solution=solution)
    assert client.asked == []


def test_neither_secret_nor_token_is_printed(client):
    verifier = SiteVerifier(client, secret=lambda: SECRET, source=TokenSource.LIVE)

    assert SECRET not in repr(verifier)
    assert SECRET not in repr(vars(verifier))
