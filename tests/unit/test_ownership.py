import hashlib
import hmac
import pickle
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_captcha_qa import scope
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import AccessNotConfigured, ConfigError, ScopeDenied, TargetUnavailable, TransportError
from pytest_captcha_qa.model.form import EnvKind
from pytest_captcha_qa.model.url import Origin, Url
from pytest_captcha_qa.ownership import (
    ProofFetcher,
    ProofKey,
    ProofTerms,
    authenticate,
    key_id,
    make_key,
    proof_url,
    render,
)
from pytest_captcha_qa.scope import OriginPattern, Probes, ScopeRules, TokenSource
from pytest_captcha_qa.transport import ProofFetch, Reply

SECRET = "00112233445566778899aabbccddeeff"
KEY = ProofKey(SECRET)
SHOP = Origin.parse("https://staging.shop.example")
ORIGINS = tuple(map(OriginPattern.parse, ("https://staging.shop.example", "https://*.preview.shop.example")))
EXPIRES = 1_811_376_000.0  # 2027-05-27T00:00:00Z
TERMS = ProofTerms(ORIGINS, EnvKind.STAGING, EXPIRES, Probes.SAFE, frozenset({"6LcB", "0x4AAA"}), 60)
LINES = [
    "captcha-qa-proof 1",
    "origins: https://staging.shop.example https://*.preview.shop.example",
    "kind: staging",
    "probes: safe",
    "sitekeys: 0x4AAA 6LcB",
    "max-solves-per-hour: 60",
    "expires: 2027-05-27T00:00:00Z",
]


def signed(lines: list[str], secret: str = SECRET) -> str:
    """Sign as the documented format says, without the code under test."""
    message = "".join(f"{line}\n" for line in lines).encode()
    mac = hmac.new(bytes.fromhex(secret), message, hashlib.sha256).hexdigest()
    return "\n".join([*lines, f"mac: {mac}", ""])


def changed(name: str, value: str) -> str:
    """Return a proof with another value, signed as it stands."""
    return signed([f"{name}: {value}" if line.startswith(f"{name}:") else line for line in LINES])


def read(text: str, key: ProofKey = KEY) -> scope.Evidence:
    return authenticate(text, key, SHOP, 7.0)


def refusal(text: str, key: ProofKey = KEY) -> ScopeDenied:
    with pytest.raises(ScopeDenied) as error:
        read(text, key)
    return error.value


def test_the_file_is_written_and_signed_as_documented() -> None:
    assert render(TERMS, KEY) == signed(LINES)


def test_no_sitekeys_and_no_limit_are_written_as_none() -> None:
    text = render(ProofTerms(ORIGINS, EnvKind.QA, EXPIRES), KEY)
    assert "\nprobes: none\nsitekeys: none\nmax-solves-per-hour: none\n" in text
    evidence = read(text)
    assert (evidence.probes, evidence.sitekeys, evidence.max_solves_per_hour) == (
        Probes.NONE,
        frozenset(),
        None,
    )


def test_what_was_signed_is_what_is_read() -> None:
    assert read(render(TERMS, KEY)) == scope.Evidence(
        fetched_from=SHOP,
        fetched_at=7.0,
        origins=ORIGINS,
        kind=EnvKind.STAGING,
        expires_at=EXPIRES,
        probes=Probes.SAFE,
        sitekeys=frozenset({"6LcB", "0x4AAA"}),
        max_solves_per_hour=60,
    )


@pytest.mark.parametrize("spelling", [str.strip, lambda text: text.replace("\n", "\r\n")])
def test_windows_line_ends_and_a_missing_last_line_end_are_tolerated(spelling: Callable[[str], str]) -> None:
    assert read(spelling(signed(LINES))) == read(signed(LINES))


def test_the_key_id_is_derived_from_the_key_as_documented() -> None:
    expected = hmac.new(bytes.fromhex(SECRET), b"captcha-qa key id", hashlib.sha256).hexdigest()[:16]
    assert key_id(KEY) == expected
    assert str(proof_url(SHOP, KEY)) == f"https://staging.shop.example/.well-known/captcha-qa/{expected}.txt"


def test_a_made_key_is_32_random_bytes_in_hexadecimal() -> None:
    first, second = make_key(), make_key()
    assert first != second
    assert re.fullmatch("[0-9a-f]{64}", first)
    assert ProofKey(first).id != ProofKey(second).id


@pytest.mark.parametrize("text", ["", " ", SECRET[:-1], SECRET[:-2], SECRET + "0", SECRET[:-1] + "g", "x" * 64])
def test_a_key_that_is_short_or_not_hexadecimal_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(ConfigError, match="at least 32") as error:
        ProofKey(text)
    assert not text.strip() or text not in error.value.message


def test_a_key_may_be_written_in_upper_case_and_with_space_around_it() -> None:
    assert ProofKey(f" {SECRET.upper()}\n").id == KEY.id


def test_a_key_shows_and_sends_nothing_secret() -> None:
    assert repr(KEY) == f"<ProofKey {KEY.id}>"
    assert SECRET not in repr(KEY)
    with pytest.raises(TypeError):
        pickle.dumps(KEY)


def test_a_file_under_another_key_proves_nothing() -> None:
    other = ProofKey("ff" * 16)
    assert refusal(render(TERMS, other)).reason == "proof_other_key"
    assert refusal(render(TERMS, KEY), other).reason == "proof_other_key"


@pytest.mark.parametrize("index", range(1, len(LINES)))
def test_a_line_that_was_edited_after_signing_is_noticed(index: int) -> None:
    lines = signed(LINES).split("\n")
    lines[index] += "0"
    assert refusal("\n".join(lines)).reason == "proof_other_key"


@given(st.integers(min_value=0, max_value=len(signed(LINES)) - 2), st.characters(max_codepoint=0x17F))
def test_no_single_changed_character_is_taken(position: int, character: str) -> None:
    text = signed(LINES)
    if character != text[position]:
        assert refusal(text[:position] + character + text[position + 1 :]).reason.startswith("proof_")


def mac_of(text: str) -> str:
    return text.rstrip("\n").rpartition("mac: ")[2]


WHOLE = signed(LINES)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "first line"),
        ("<!doctype html><p>evil-marker</p>", "first line"),
        (WHOLE.replace("proof 1", "proof 2"), "first line"),
        ("\ufeff" + WHOLE, "first line"),
        ("\n" + WHOLE, "first line"),
        (WHOLE.replace("kind: staging\n", ""), "lacks kind"),
        (WHOLE.replace("kind: staging\n", "").replace("probes: safe\n", ""), "lacks kind, probes"),
        (WHOLE.rpartition("mac:")[0], "lacks mac"),
        (WHOLE.replace("kind: staging\n", "kind: staging\nkind: staging\n"), "line 4 says kind again"),
        (WHOLE + f"mac: {mac_of(WHOLE)}\n", "line 9 says mac again"),
        (WHOLE.replace("kind:", "evil-marker: x\nkind:"), "line 3 is none of"),
        (WHOLE.replace("kind:", "Kind:"), "line 3 is none of"),
        (WHOLE.replace("kind: ", "kind:"), "line 3 is none of"),
        (WHOLE.replace("kind:", "# evil-marker\nkind:"), "line 3 is none of"),
        (WHOLE.replace("kind:", "\nkind:"), "line 3 is none of"),
        (WHOLE + "\n", "line 9 is none of"),
        (WHOLE + "evil-marker\n", "line 9 is none of"),
        (WHOLE.replace("kind: staging\nprobes: safe\n", "probes: safe\nkind: staging\n"), "order"),
        (WHOLE.replace(mac_of(WHOLE), mac_of(WHOLE)[:-1]), "mac is not"),
        (WHOLE.replace(mac_of(WHOLE), mac_of(WHOLE).upper()), "mac is not"),
        (WHOLE.replace(mac_of(WHOLE), mac_of(WHOLE) + " "), "mac is not"),
        (WHOLE.replace(mac_of(WHOLE), "evil-marker"), "mac is not"),
        (changed("origins", ""), "origins"),
        (changed("origins", "https://staging.shop.example,https://b.example"), "origins"),
        (changed("origins", "https://staging.shop.example  https://b.example"), "origins"),
        (changed("origins", "https://EVIL-MARKER.example"), "origins"),
        (changed("origins", "https://evil-marker@staging.shop.example"), "origins"),
        (changed("origins", "https://*"), "origins"),
        (changed("origins", "*"), "origins"),
        (changed("origins", "https://*.*.shop.example"), "origins"),
        (changed("kind", "Staging"), "kind is none of demo, qa, staging, production"),
        (changed("kind", "evil-marker"), "kind is none of"),
        (changed("kind", "staging "), "kind is none of"),
        (changed("probes", "some"), "probes is none of none, safe, all"),
        (changed("sitekeys", ""), "sitekeys"),
        (changed("sitekeys", "a  b"), "sitekeys"),
        (changed("sitekeys", "none 6Lc"), "sitekeys"),
        (changed("sitekeys", "<evil-marker>"), "sitekeys"),
        (changed("sitekeys", "a" * 201), "sitekeys"),
        (changed("max-solves-per-hour", "0"), "max-solves-per-hour"),
        (changed("max-solves-per-hour", "-1"), "max-solves-per-hour"),
        (changed("max-solves-per-hour", "060"), "max-solves-per-hour"),
        (changed("max-solves-per-hour", "1e3"), "max-solves-per-hour"),
        (changed("max-solves-per-hour", "6０"), "max-solves-per-hour"),
        (changed("max-solves-per-hour", "1000000"), "max-solves-per-hour"),
        (changed("max-solves-per-hour", ""), "max-solves-per-hour"),
        (changed("expires", "2027-05-27"), "expiry"),
        (changed("expires", "2027-5-27T00:00:00Z"), "expiry"),
        (changed("expires", "2027-02-30T00:00:00Z"), "expiry"),
        (changed("expires", "2027-05-27T00:00:00+00:00"), "expiry"),
        (changed("expires", "2027-05-27t00:00:00z"), "expiry"),
        (changed("expires", "0000-00-00T00:00:00Z"), "expiry"),
        (changed("expires", "never"), "expiry"),
    ],
)
def test_a_file_that_departs_from_the_format_is_refused_with_its_own_sentence(text: str, why: str) -> None:
    error = refusal(text)
    assert error.reason == "proof_unreadable"
    assert why in error.message
    assert str(SHOP) in error.message
    assert "evil-marker" not in error.message.lower()


@given(st.text(max_size=200))
def test_no_unsigned_text_is_ever_a_proof(text: str) -> None:
    for candidate in (text, f"{LINES[0]}\n{text}", "\n".join([*LINES, text])):
        assert refusal(candidate).reason in ("proof_unreadable", "proof_other_key")


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        (ProofTerms((), EnvKind.QA, EXPIRES), "origins"),
        (ProofTerms(ORIGINS, EnvKind.QA, EXPIRES, sitekeys=frozenset({"a b"})), "sitekeys"),
        (ProofTerms(ORIGINS, EnvKind.QA, EXPIRES, sitekeys=frozenset({"a\nmac: 0"})), "sitekeys"),
        (ProofTerms(ORIGINS, EnvKind.QA, EXPIRES, sitekeys=frozenset({"none"})), "sitekeys"),
        (ProofTerms(ORIGINS, EnvKind.QA, EXPIRES, max_solves_per_hour=0), "max-solves-per-hour"),
        (ProofTerms(ORIGINS, EnvKind.QA, EXPIRES, max_solves_per_hour=-5), "max-solves-per-hour"),
        (
            ProofTerms(ORIGINS, EnvKind.QA, EXPIRES, sitekeys=frozenset(f"{i:0200}" for i in range(30))),
            "4 KiB",
        ),
    ],
)
def test_terms_that_cannot_be_written_are_refused(terms: ProofTerms, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        render(terms, KEY)


class ScriptedClient:
    """Stands in for the transport: gives one answer and remembers what was asked."""

    def __init__(self, answer: Reply | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str, object, int]] = []
        self.seconds = 0.0

    def request(self, method: str, url: Url, *, deadline: Deadline, grant: object, limit: int) -> Reply:
        self.asked.append((method, str(url), grant, limit))
        self.seconds = deadline.remaining()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


RULES = ScopeRules("staging", EnvKind.STAGING, ORIGINS, TokenSource.LIVE)
URL = proof_url(SHOP, KEY)
PLAIN_TEXT = {"Content-Type": "text/plain; charset=utf-8"}


class Headers(dict[str, str]):
    """Finds names as the transport's headers do."""


def reply(status: int, body: str | bytes = "", headers: Mapping[str, str] = PLAIN_TEXT) -> Reply:
    return Reply(status, URL, Headers(headers), body.encode() if isinstance(body, str) else body)


def fetcher(client: ScriptedClient, key: ProofKey | None = KEY) -> ProofFetcher:
    speaking: Any = client
    return ProofFetcher(speaking, key, RULES, monotonic=lambda: 42.0)


def test_the_proof_is_fetched_from_the_concrete_origin_within_its_limits() -> None:
    client = ScriptedClient(reply(200, WHOLE))
    evidence = fetcher(client).evidence(SHOP)
    assert client.asked == [("GET", str(URL), ProofFetch(SHOP), 4096)]
    assert 14 < client.seconds <= 15
    assert (evidence.fetched_from, evidence.fetched_at) == (SHOP, 42.0)


def test_a_preview_host_is_asked_itself() -> None:
    preview = Origin.parse("https://pr-7.preview.shop.example")
    client = ScriptedClient(reply(200, WHOLE))
    evidence = fetcher(client).evidence(preview)
    assert client.asked[0][1].startswith("https://pr-7.preview.shop.example/.well-known/")
    assert evidence.fetched_from == preview


def redirect(location: str, status: int = 302) -> Reply:
    return reply(status, headers={"Location": location})


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (reply(404), "proof_missing"),
        (reply(410), "proof_missing"),
        (reply(404, WHOLE), "proof_missing"),
        (reply(500, WHOLE), "proof_unreachable"),
        (reply(429), "proof_unreachable"),
        (reply(201, WHOLE), "proof_unreachable"),
        (reply(204), "proof_unreachable"),
        (reply(206, WHOLE), "proof_unreachable"),
        (redirect(f"{URL.path}/", 301), "proof_redirected"),
        (redirect(f"https://www.staging.shop.example{URL.path}", 308), "proof_redirected"),
        (redirect("/", 303), "proof_redirected"),
        (redirect("/authors/1"), "proof_redirected"),
        (redirect("https://\\bad"), "proof_redirected"),
        (reply(304), "proof_redirected"),
        (reply(302, WHOLE), "proof_redirected"),
        (reply(200, WHOLE, {}), "proof_wrong_type"),
        (reply(200, WHOLE, {"Content-Type": "text/html"}), "proof_wrong_type"),
        (reply(200, WHOLE, {"Content-Type": "application/octet-stream"}), "proof_wrong_type"),
        (reply(200, WHOLE, {"Content-Type": "text/plainer"}), "proof_wrong_type"),
        (reply(200, "<html><p>Welcome</p>", {"Content-Type": "text/html"}), "proof_wrong_type"),
        (reply(200, b"\xff\xfe"), "proof_unreadable"),
        (reply(200, "Not found"), "proof_unreadable"),
        (reply(200, signed(LINES, "ff" * 16)), "proof_other_key"),
        (TransportError("GET x: too large", kind="too_large"), "proof_too_large"),
        (TransportError("GET x: no such name", kind="dns", sent=False), "proof_unreachable"),
        (TransportError("GET x: TLS failed", kind="tls"), "proof_unreachable"),
    ],
)
def test_what_is_no_proof_is_refused_with_its_own_reason(answer: Reply | Exception, reason: str) -> None:
    with pytest.raises(ScopeDenied) as error:
        fetcher(ScriptedClient(answer)).evidence(SHOP)
    assert error.value.reason == reason
    assert error.value.__suppress_context__ or error.value.__context__ is None


@pytest.mark.parametrize(
    "answer",
    [
        reply(502),
        reply(503),
        TransportError("GET x: late", kind="timeout"),
        TransportError("GET x: refused", kind="refused", sent=False),
        TransportError("GET x: reset", kind="reset"),
    ],
)
def test_a_site_that_is_down_is_no_refusal_and_gives_no_grant(answer: Reply | Exception) -> None:
    with pytest.raises(TargetUnavailable, match="the site is down") as error:
        fetcher(ScriptedClient(answer)).evidence(SHOP)
    assert not error.value.sent
    assert error.value.__suppress_context__ or error.value.__context__ is None


@pytest.mark.parametrize(
    "answer",
    [
        reply(401),
        reply(403, WHOLE),
        redirect("/login?next=/"),
        redirect("/users/sign_in"),
        redirect("/oauth2/start"),
        redirect("/auth/"),
        redirect("https://shop.cloudflareaccess.example/cdn-cgi/access"),
        redirect("//idp.example/saml2/start"),
        reply(200, '<form><input name=p type="password">', {"Content-Type": "text/html; charset=utf-8"}),
        reply(200, "<form><INPUT TYPE=password name=p>", {"Content-Type": "text/html"}),
    ],
)
def test_a_login_in_place_of_the_proof_is_an_access_setting_that_is_missing(answer: Reply) -> None:
    with pytest.raises(AccessNotConfigured, match=r"\[env\.staging\.http\]") as error:
        fetcher(ScriptedClient(answer)).evidence(SHOP)
    assert error.value.exit_code == 4


def test_without_a_key_nothing_is_fetched_and_the_way_to_one_is_told() -> None:
    client = ScriptedClient(reply(200, WHOLE))
    with pytest.raises(ScopeDenied, match="captcha-qa authorise staging") as error:
        fetcher(client, key=None).evidence(SHOP)
    assert error.value.reason == "proof_key_missing"
    assert "CAPTCHA_QA_PROOF_KEY" in error.value.message
    assert client.asked == []


def test_from_an_origin_that_is_not_configured_nothing_is_fetched() -> None:
    client = ScriptedClient(reply(200, WHOLE))
    with pytest.raises(ScopeDenied) as error:
        fetcher(client).evidence(Origin.parse("https://evil.example"))
    assert error.value.reason == "origin_not_listed"
    assert client.asked == []


def test_a_fetched_proof_gives_a_grant_for_ten_minutes_from_its_fetch() -> None:
    evidence = fetcher(ScriptedClient(reply(200, WHOLE))).evidence(SHOP)
    clock = [42.0]
    grant = scope.check(f"{SHOP}/", RULES, evidence, monotonic=lambda: clock[0], utc=lambda: EXPIRES - 86400)
    assert isinstance(grant, scope.ScopeGrant)
    clock[0] = 42.0 + 599
    assert grant.fresh
    clock[0] = 42.0 + 600
    assert not grant.fresh
