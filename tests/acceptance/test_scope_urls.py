"""R0: crafted URLs, redirects and proxies get no grant that they should not have."""

import itertools
import re
import subprocess
import sys
import textwrap
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urljoin, urlsplit

import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st
from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from pytest_captcha_qa import scope
from pytest_captcha_qa.engine.authorising import Grants
from pytest_captcha_qa.engine.ports import SystemClock
from pytest_captcha_qa.errors import AccessNotConfigured, ScopeDenied, TargetUnavailable
from pytest_captcha_qa.model.form import EnvKind
from pytest_captcha_qa.model.url import Origin, Url, UrlRefused
from pytest_captcha_qa.ownership import ProofFetcher, ProofKey, ProofTerms, proof_url, render
from pytest_captcha_qa.scope import Evidence, OriginPattern, ScopeGrant, ScopeRules, TokenSource
from pytest_captcha_qa.transport import HttpClient

NOW, UPTIME = 1_800_000_000.0, 5_000.0
PATTERNS = tuple(map(OriginPattern.parse, ("https://staging.shop.example", "https://*.preview.shop.example")))
LOCAL = OriginPattern.parse("http://127.0.0.1:8000")
LIVE = ScopeRules("staging", EnvKind.STAGING, (*PATTERNS, LOCAL), TokenSource.LIVE)
SANDBOX = ScopeRules("staging", EnvKind.STAGING, (*PATTERNS, LOCAL), TokenSource.SANDBOX)
PROVEN = ("https://staging.shop.example", "https://pr-7.preview.shop.example")

Parts = tuple[str, str, int]
DEFAULT_PORTS = {"http": 80, "https": 443}


def may_be_granted(origin: str) -> bool:
    """Say it again without our parser: the three kinds of origins that the rules allow."""
    return origin in ("https://staging.shop.example", "http://127.0.0.1:8000") or bool(
        re.fullmatch(r"https://[a-z0-9-]{1,63}\.preview\.shop\.example", origin)
    )


def grants_for(target: str) -> list[ScopeGrant]:
    """Ask with everything the owner ever proved, with a real provider and with the sandbox."""
    served = (Evidence(Origin.parse(text), UPTIME, PATTERNS, EnvKind.STAGING, NOW + 86400.0) for text in PROVEN)
    proofs: list[Evidence | None] = [None, *served]
    decisions = [
        scope.check(target, rules, proof, monotonic=lambda: UPTIME, utc=lambda: NOW)
        for rules, proof in itertools.product((LIVE, SANDBOX), proofs)
    ]
    return [decision for decision in decisions if isinstance(decision, ScopeGrant)]


def by_urllib(text: str) -> Parts | None:
    try:
        split = urlsplit(text)
        return split.scheme, split.hostname or "", split.port or DEFAULT_PORTS.get(split.scheme, 0)
    except ValueError:
        return None


def by_urllib3(text: str) -> Parts | None:
    try:
        split = parse_url(text)
    except LocationParseError:
        return None
    scheme = split.scheme or ""
    return scheme, (split.host or "").strip("[]"), split.port or DEFAULT_PORTS.get(scheme, 0)


def by_requests(text: str) -> Parts | None:
    try:
        prepared = requests.Request("GET", text).prepare().url
    except (requests.RequestException, UnicodeError):
        return None
    return by_urllib(prepared or "")


def by_a_browser(text: str) -> Parts | None:
    """Read it as the URL Standard does: it forgives more than the libraries, so it is who is fooled first."""
    text = re.sub(r"[\t\n\r]", "", text.strip("".join(map(chr, range(33))))).replace("\\", "/")
    match = re.match(r"(https?):/*([^/?#]*)", text, re.IGNORECASE)
    if not match:
        return None
    scheme, authority = match.group(1).lower(), match.group(2).rpartition("@")[2]
    host = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::(\d*))?", authority)
    if not host:
        return None
    return scheme, host.group(1).strip("[]").lower(), int(host.group(2) or DEFAULT_PORTS[scheme])


PARSERS = (by_urllib, by_urllib3, by_requests, by_a_browser)


def assert_only_rightful_grants(target: str) -> bool:
    """Return whether a grant was given; fail if anybody could read the target as something else."""
    grants = grants_for(target)
    for grant in grants:
        origin = grant.origin
        assert may_be_granted(str(origin)), f"{target!r} got {grant}"
        assert {parse(target) for parse in PARSERS} == {(origin.scheme, origin.host.strip("[]"), origin.port)}
        rebuilt = str(Url.parse(target))
        assert {parse(rebuilt) for parse in PARSERS} == {(origin.scheme, origin.host.strip("[]"), origin.port)}
    return bool(grants)


HOSTS = [
    "staging.shop.example",
    "pr-7.preview.shop.example",
    "127.0.0.1:8000",
    # user info
    "user@staging.shop.example", "user:pw@staging.shop.example", "staging.shop.example@evil.example",
    "staging.shop.example:443@evil.example", "evil.example@staging.shop.example", "@staging.shop.example",
    "staging.shop.example%40evil.example", "127.0.0.1:8000@evil.example", "a@b@staging.shop.example",
    # backslash, tab and other invisible characters
    "staging.shop.example\\@evil.example", "evil.example\\@staging.shop.example",
    "evil.example\\.shop.example",
    "staging.shop.example\t", "staging\t.shop.example", "staging.shop.example\n.evil.example",
    "staging.shop.example\r", "staging.shop.example\x00.evil.example", "staging.shop.example .evil.example",
    "\tstaging.shop.example", "staging.shop.example\u200b", "staging.shop.example\u00ad",
    "\u2028staging.shop.example",
    "staging.shop.example\u3000", "staging.shop.example\x7f", "staging.shop.example\x85",
    # ports
    "staging.shop.example:443", "staging.shop.example:80", "staging.shop.example:8443",
    "staging.shop.example:",
    "staging.shop.example:0", "staging.shop.example:0443", "staging.shop.example:00000443",
    "staging.shop.example:65979", "staging.shop.example:+443", "staging.shop.example:-443",
    "staging.shop.example:４４３", "staging.shop.example:4_43", "staging.shop.example:443:443",
    "staging.shop.example:443evil", "127.0.0.1:80", "127.0.0.1", "127.0.0.1:8001", "127.0.0.1:08000",
    "127.0.0.1:+8000", "127.0.0.1:73536", "127.0.0.1:8000:8000",
    # international names and look-alikes
    "stаging.shop.example", "staging.ѕhop.example", "ｓtaging.shop.example", "staging。shop。example",
    "staging．shop.example", "ſtaging.shop.example", "staging.shop.exampⅼe", "xn--staging-.shop.example",
    "xn--stging-3ve.shop.example", "staging.shop.example℀", "staging.shop.example／evil.example",
    "staging.shop.example＃evil.example", "pr-７.preview.shop.example", "ß.preview.shop.example",
    "staging%2eshop.example", "staging.shop%2Eexample", "%73taging.shop.example",
    # dots, case and labels
    "staging.shop.example.", "staging.shop.example..", ".staging.shop.example", "staging..shop.example",
    "Staging.shop.example", "STAGING.SHOP.EXAMPLE", "staging.Shop.example", "127.0.0.1.:8000",
    "shop.example", "preview.shop.example", "*.preview.shop.example", ".preview.shop.example",
    "a.b.preview.shop.example", "evilpreview.shop.example", "a.preview.shop.example.evil.example",
    "evil.example.preview.shop.example", "a_b.preview.shop.example", "-.preview.shop.example",
    f"{'a' * 64}.preview.shop.example", f"{'a' * 63}.preview.shop.example", "a.PREVIEW.shop.example",
    "staging.shop.example.evil.example", "staging-shop.example", "evilstaging.shop.example",
    # other spellings of the loopback address
    "127.1:8000", "127.0.1:8000", "2130706433:8000", "0x7f000001:8000", "0x7f.0.0.1:8000", "0177.0.0.1:8000",
    "017700000001:8000", "127.0.0.01:8000", "127.000.000.001:8000", "127.0.0.1.1:8000", "127.0.0.257:8000",
    "①②⑦.⓪.⓪.①:8000", "１２７.0.0.1:8000", "[::1]:8000", "[0:0:0:0:0:0:0:1]:8000", "[::ffff:127.0.0.1]:8000",
    "[::ffff:7f00:1]:8000", "[::127.0.0.1]:8000", "[::1%25lo]:8000", "[::1%lo]:8000", "[127.0.0.1]:8000",
    "[::]:8000",
    "[::1:8000", "::1:8000", "[64:ff9b::7f00:1]:8000", "0:8000", "0.0.0.0:8000", "127.0.0.2:8000",
    "[v1.x]:8000",
    "127.0.0.1%00:8000", "127.0.0.1;:8000", "127.0.0.1,staging.shop.example:8000",
    # names that resolve to loopback
    "localhost:8000", "LOCALHOST:8000", "localhost.:8000", "localhost.localdomain:8000", "ip6-localhost:8000",
    "localhost.example:8000", "127.0.0.1.nip.io:8000", "127-0-0-1.nip.io:8000", "lvh.me:8000",
    "localtest.me:8000",
    "staging.localhost:8000", "loopback:8000",
]  # fmt: skip

SHAPES = [
    "https://{}/signup",
    "http://{}/signup",
    "https://{}",
    "https:{}/",
    "https:/{}/",
    "https:///{}/",
    "//{}/",
    "HTTPS://{}/",
    "hTTp://{}/",
    " https://{}/",
    "ht\ttps://{}/",
    "https:\\\\{}\\",
    "https://evil.example/{}",
    "https://evil.example?{}",
    "https://evil.example#{}",
    "https://evil.example\\{}",
    "https://evil.example#@{}/",
    "https://evil.example?@{}/",
    "https://{}#@evil.example/",
    "https://{}?@evil.example/",
    "https://{}\\@evil.example/",
    "https://{};@evil.example/",
    "https://{}/\\evil.example",
    "https://{}//evil.example/%2e%2e",
    "wss://{}/",
    "javascript://{}/%0aalert(1)",
    "https+unix://{}/",
    "blob:https://{}/",
    "url=https://{}/",
]

CRAFTED = list(
    dict.fromkeys(
        [shape.format(host) for host in HOSTS for shape in SHAPES[:2]]
        + [shape.format(host) for host in HOSTS[:3] for shape in SHAPES]
    )
)
GRANTED = [
    "https://staging.shop.example/signup",
    "https://staging.shop.example",
    "https://staging.shop.example#@evil.example/",
    "https://staging.shop.example?@evil.example/",
    "https://staging.shop.example//evil.example/%2e%2e",
    "https://pr-7.preview.shop.example/signup",
    "http://127.0.0.1:8000/signup",
]


def test_at_least_two_hundred_distinct_urls_are_crafted() -> None:
    assert len(set(CRAFTED)) >= 200
    assert set(GRANTED) <= set(CRAFTED)


@pytest.mark.parametrize("target", CRAFTED, ids=ascii)
def test_a_crafted_url_gets_a_grant_only_if_every_parser_reads_the_granted_origin(target: str) -> None:
    granted = assert_only_rightful_grants(target)
    if target in GRANTED:
        assert granted


def test_the_crafted_urls_that_are_granted_are_few() -> None:
    # What the plain hosts give in harmless shapes; all the rest of the table is refused.
    granted = [target for target in CRAFTED if grants_for(target)]
    assert all(any(f"//{host}" in target for host in HOSTS[:3]) for target in granted)
    assert len(granted) < 20


NASTY = st.sampled_from(
    [*"@\\/:?#[]%.*-_ \t\r\n\x00;,&=+0aA", "\u200b", "。", "．", "ſ", "％", "://", "//", "%2e", "%40"]
)


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """Take an allowed URL and change one to four places of it."""
    text = draw(st.sampled_from(GRANTED))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 2))
        text = text[:start] + draw(st.one_of(st.just(""), NASTY)) + text[start + cut :]
    return text


@settings(max_examples=600, deadline=None)
@given(mutations())
def test_no_mutation_of_an_allowed_url_gets_a_grant_for_something_else(target: str) -> None:
    assert_only_rightful_grants(target)


@settings(max_examples=400, deadline=None)
@given(mutations(), st.sampled_from(["staging.shop.example", "evil.example", "127.0.0.1:8000", "", "//"]))
def test_no_mutated_reference_on_a_page_leads_further_than_a_client_would_go(reference: str, host: str) -> None:
    page = Url.parse("https://staging.shop.example/a/b")
    for candidate in (
        reference,
        reference.partition(":")[2],
        f"//{host}{reference[8:]}",
        f"/{reference[8:]}",
    ):
        try:
            reached = page.join(candidate)
        except UrlRefused:
            continue
        client = by_a_browser(urljoin(str(page), candidate.strip()))
        assert client == (reached.origin.scheme, reached.origin.host.strip("[]"), reached.origin.port)
        assert_only_rightful_grants(str(reached))


@pytest.mark.parametrize(
    ("chain", "last"),
    [
        (["/login", "welcome", "?done=1"], "https://staging.shop.example/welcome?done=1"),
        (
            ["https://pr-7.preview.shop.example/a", "//staging.shop.example/b"],
            "https://staging.shop.example/b",
        ),
        (["/a", "https://evil.example/"], "https://staging.shop.example/a"),
        (["/a", "//evil.example/"], "https://staging.shop.example/a"),
        (["/a", "///evil.example/"], "https://staging.shop.example/a"),
        (["/a", "/\\evil.example/"], "https://staging.shop.example/a"),
        (["/a", "\\\\evil.example/"], "https://staging.shop.example/a"),
        (["/a", "/\t/evil.example/"], "https://staging.shop.example/a"),
        (["/a", "https:evil.example"], "https://staging.shop.example/a"),
        (["/a", "http://staging.shop.example/"], "https://staging.shop.example/a"),
        (["/a", "https://staging.shop.example:8443/"], "https://staging.shop.example/a"),
        (["/a", "https://staging.shop.example@evil.example/"], "https://staging.shop.example/a"),
        (["/a", "https://evil.example/", "https://staging.shop.example/"], "https://staging.shop.example/a"),
        (["//evil.example/open?to=https://staging.shop.example/"], "https://staging.shop.example/"),
        (["/a", "http://127.0.0.1:8000/"], "https://staging.shop.example/a"),
        (["/a", "http://localhost:8000/"], "https://staging.shop.example/a"),
        (["/a", "javascript:location='//evil.example'"], "https://staging.shop.example/a"),
        (["/a", "data:text/html,<meta http-equiv=refresh content=0>"], "https://staging.shop.example/a"),
        (["/..//evil.example/", "b"], "https://staging.shop.example//evil.example/b"),
    ],
)
def test_a_redirect_chain_ends_where_it_would_leave_the_granted_origins(chain: list[str], last: str) -> None:
    url = Url.parse("https://staging.shop.example/")
    for location in chain:
        try:
            following = url.join(location)
        except UrlRefused:
            break
        live = [grant for grant in grants_for(str(following)) if grant.source is TokenSource.LIVE]
        if not live:
            break
        assert live[0].covers(following)
        url = following
    assert str(url) == last


OUR_KEY, THEIR_KEY = ProofKey("11" * 32), ProofKey("22" * 32)


class Site:
    """A local server: `files` maps paths to (status, headers, body), `seen` holds what was asked for."""

    def __init__(self, forwards_to: str | None = None) -> None:
        self.files: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.seen: list[str] = []
        self.forwards_to = forwards_to
        self.origin = Origin("http", "127.0.0.1", 1)

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        self.seen.append(path)
        if self.forwards_to is None:
            return self.files.get(path, (404, {"Content-Type": "text/plain"}, b"not found"))
        try:
            with urllib.request.urlopen(self.forwards_to + path) as reply:
                return reply.status, {"Content-Type": reply.headers["Content-Type"]}, reply.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, {"Content-Type": "text/plain"}, error.read()

    def serve_proof(self, key: ProofKey, *origins: Origin, at: ProofKey | None = None) -> None:
        patterns = tuple(map(OriginPattern, origins))
        terms = ProofTerms(patterns, EnvKind.STAGING, SystemClock().utc() + 86400.0)
        path = proof_url(self.origin, at or key).path
        self.files[path] = (200, {"Content-Type": "text/plain; charset=utf-8"}, render(terms, key).encode())


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = site.answer(self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test's output clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site.origin = Origin("http", "127.0.0.1", server.server_port)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def victim() -> Iterator[Site]:
    with serving(Site()) as site:
        yield site


@pytest.fixture
def proxy(victim: Site) -> Iterator[Site]:
    with serving(Site(str(victim.origin))) as site:
        yield site


@pytest.fixture
def client() -> Iterator[HttpClient]:
    client = HttpClient()
    yield client
    client.close()


def ask(origin: Origin, client: HttpClient) -> ScopeGrant:
    """Decide as an attempt does, over real sockets, with a real provider's tokens."""
    rules = replace(LIVE, origins=(OriginPattern(origin),))
    return Grants(rules, ProofFetcher(client, OUR_KEY, rules), SystemClock()).grant(Url(origin, "/signup", ""))


def test_an_origin_on_loopback_that_serves_its_own_proof_is_granted(victim: Site, client: HttpClient) -> None:
    victim.serve_proof(OUR_KEY, victim.origin)
    grant = ask(victim.origin, client)
    assert (grant.origin, grant.loopback, grant.weak) == (victim.origin, True, True)


def test_a_proxy_in_front_of_a_site_with_a_proof_of_its_own_gets_no_grant(
    victim: Site, proxy: Site, client: HttpClient
) -> None:
    victim.serve_proof(THEIR_KEY, victim.origin)
    with pytest.raises(ScopeDenied) as error:
        ask(proxy.origin, client)
    assert error.value.reason == "proof_missing"
    assert victim.seen == [proof_url(proxy.origin, OUR_KEY).path]


def test_a_proxy_gets_no_grant_from_somebody_elses_proof_under_our_name(
    victim: Site, proxy: Site, client: HttpClient
) -> None:
    victim.serve_proof(THEIR_KEY, proxy.origin, at=OUR_KEY)
    with pytest.raises(ScopeDenied) as error:
        ask(proxy.origin, client)
    assert error.value.reason == "proof_other_key"


def test_a_proxy_gets_no_grant_from_our_proof_of_the_site_behind_it(
    victim: Site, proxy: Site, client: HttpClient
) -> None:
    victim.serve_proof(OUR_KEY, victim.origin)
    with pytest.raises(ScopeDenied) as error:
        ask(proxy.origin, client)
    assert error.value.reason == "proof_other_origin"
    assert victim.seen == [proof_url(proxy.origin, OUR_KEY).path]


@pytest.mark.parametrize("port", [80, 443, 1])
def test_another_port_in_the_proof_is_another_origin(victim: Site, client: HttpClient, port: int) -> None:
    victim.serve_proof(OUR_KEY, replace(victim.origin, port=port))
    with pytest.raises(ScopeDenied) as error:
        ask(victim.origin, client)
    assert error.value.reason == "proof_other_origin"


def test_a_redirect_to_a_site_that_has_the_proof_proves_nothing(victim: Site, client: HttpClient) -> None:
    with serving(Site()) as front:
        victim.serve_proof(OUR_KEY, victim.origin, front.origin)
        path = proof_url(front.origin, OUR_KEY).path
        front.files[path] = (302, {"Location": f"{victim.origin}{path}"}, b"")
        with pytest.raises(ScopeDenied) as error:
            ask(front.origin, client)
    assert error.value.reason == "proof_redirected"
    assert victim.seen == []


@pytest.mark.parametrize(
    ("status", "headers", "body", "reason"),
    [
        (200, {"Content-Type": "text/plain"}, b"x" * 4097, "proof_too_large"),
        (200, {"Content-Type": "text/html"}, b"<p>Welcome", "proof_wrong_type"),
        (200, {"Content-Type": "text/plain"}, b"x" * 4096, "proof_unreadable"),
        (500, {"Content-Type": "text/plain"}, b"", "proof_unreachable"),
    ],
)
def test_what_stands_in_place_of_the_proof_is_told(
    victim: Site, client: HttpClient, status: int, headers: dict[str, str], body: bytes, reason: str
) -> None:
    victim.files[proof_url(victim.origin, OUR_KEY).path] = (status, headers, body)
    with pytest.raises(ScopeDenied) as error:
        ask(victim.origin, client)
    assert error.value.reason == reason


def test_a_login_in_place_of_the_proof_asks_for_access_settings(victim: Site, client: HttpClient) -> None:
    victim.files[proof_url(victim.origin, OUR_KEY).path] = (401, {"Content-Type": "text/plain"}, b"")
    with pytest.raises(AccessNotConfigured):
        ask(victim.origin, client)


def test_nobody_at_the_port_means_no_grant(client: HttpClient) -> None:
    with serving(Site()) as gone:
        origin = gone.origin
    with pytest.raises(TargetUnavailable) as error:
        ask(origin, client)
    assert not error.value.sent


def test_a_forked_child_cannot_use_the_grant_it_inherits() -> None:
    script = textwrap.dedent("""
        import os
        from pytest_captcha_qa import scope
        from pytest_captcha_qa.errors import ScopeDenied, TargetUnavailable
        from pytest_captcha_qa.model.form import EnvKind
        from pytest_captcha_qa.model.url import Url
        url = Url.parse("http://127.0.0.1:8000/")
        origins = (scope.OriginPattern(url.origin),)
        rules = scope.ScopeRules("qa", EnvKind.QA, origins, scope.TokenSource.SANDBOX)
        grant = scope.check(url, rules, None)
        scope.ensure(grant, url)
        if os.fork() == 0:
            try:
                scope.ensure(grant, url)
            except ScopeDenied as denied:
                os._exit(15 if denied.reason == "grant_mismatch" else 1)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "15\n"
