"""Forms and verifiers over real sockets: the sandbox's site, and a small site that misbehaves."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pytest_captcha_qa.engine.authorising import Grants
from pytest_captcha_qa.engine.ports import SystemClock
from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.errors import PageError, ScopeDenied, TargetUnavailable
from pytest_captcha_qa.forms.page import HttpFormDriver, OpenedHtmlForm
from pytest_captcha_qa.model.answer import Rule
from pytest_captcha_qa.model.attempt import VerifyStatus
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge, EnvKind, FormSpec, VerifySpec, VerifyVia
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.provider.dialects import SANDBOX
from pytest_captcha_qa.provider.http import HttpProvider
from pytest_captcha_qa.sandbox import keys
from pytest_captcha_qa.sandbox.server import SandboxAddresses, SandboxProcess
from pytest_captcha_qa.scope import OriginPattern, ScopeRules, TokenSource
from pytest_captcha_qa.transport import HttpClient
from pytest_captcha_qa.verify.siteverify import SiteVerifier

PAGES = Path(__file__).parents[2] / "fixtures" / "pages"
FIELDS = {"email": "qa@example.com", "name": "Quality Check"}
ACCEPTED = Rule(status=(303,), location="/welcome*")
REFUSED = Rule(status=(422,), text="The captcha check failed")

ENTERPRISE = keys.KeyPair(keys.RECAPTCHA_ENTERPRISE.sitekey, f"my-project/{keys.RECAPTCHA_ENTERPRISE.secret}")
FORMS = {
    CaptchaType.RECAPTCHA_V2: "/recaptcha-v2",
    CaptchaType.RECAPTCHA_V3: "/recaptcha-v3",
    CaptchaType.TURNSTILE: "/turnstile",
    CaptchaType.GEETEST_V3: "/geetest-v3",
}


def form_of(kind: CaptchaType, path: str, success: Rule = ACCEPTED, **more: object) -> FormSpec:
    return FormSpec("form", path, kind, success, fields=FIELDS, refused=REFUSED, **more)  # type: ignore[arg-type]


def deadline(seconds: float = 10) -> Deadline:
    return Deadline(seconds, what="the test")


class NoProof:
    """The proof of loopback is never asked for."""

    def evidence(self, origin: object) -> object:
        raise AssertionError("loopback with the sandbox needs no proof")


def grants_for(site: str) -> Grants:
    rules = ScopeRules("demo", EnvKind.DEMO, (OriginPattern.parse(site),), TokenSource.SANDBOX)
    return Grants(rules, NoProof(), SystemClock())  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxAddresses]:
    with SandboxProcess() as process:
        yield process.start(time_scale=0.001, seed=1)


@pytest.fixture
def client() -> Iterator[HttpClient]:
    client = HttpClient(marks={"X-Captcha-QA-Run": "run-1"})
    yield client
    client.close()


@pytest.fixture
def open_form(client: HttpClient) -> Callable[[FormSpec, str], OpenedHtmlForm]:
    """Open a form below an address that alone is granted."""

    def open_it(form: FormSpec, site: str) -> OpenedHtmlForm:
        driver = HttpFormDriver(client.new_session)
        return driver.open(form, Url.parse(site).join(form.path), grants_for(site), deadline())

    return open_it


@pytest.fixture
def solve(sandbox: SandboxAddresses, client: HttpClient) -> Callable[[Challenge], Solution]:
    provider = HttpProvider(
        SANDBOX,
        key="a" * 32,
        client=client,
        base_url=Url.parse(sandbox.provider),
        time_scale=sandbox.time_scale,
    )

    def solve_it(challenge: Challenge) -> Solution:
        grant = grants_for(sandbox.site).grant(challenge.page)
        task_id = provider.submit(challenge, grant, deadline())
        limit = deadline()
        while (solution := provider.poll(challenge, task_id, limit)) is None:
            Stop().wait(limit.cap(provider.polling(challenge).interval))
        return solution

    return solve_it


# -- the sandbox's site


@pytest.mark.parametrize(("kind", "path"), FORMS.items())
def test_each_type_is_opened_solved_and_accepted_once(sandbox, open_form, solve, kind, path):
    opened = open_form(form_of(kind, path), sandbox.site)
    solution = solve(opened.challenge)
    grants = grants_for(sandbox.site)

    assert opened.submit(None, FIELDS, grants, deadline()).status == 422
    assert ACCEPTED.matches(opened.submit(solution, FIELDS, grants, deadline()))
    assert REFUSED.matches(opened.submit(solution, FIELDS, grants, deadline()))


def test_the_page_after_the_redirect_is_judged_when_the_rule_asks_for_it(sandbox, open_form, solve):
    rule = Rule(status=(200,), text="Thank you! We have received: Log in.")
    opened = open_form(form_of(CaptchaType.TURNSTILE, "/turnstile", rule), sandbox.site)
    answer = opened.submit(solve(opened.challenge), FIELDS, grants_for(sandbox.site), deadline())

    assert rule.matches(answer)
    assert answer.url.path == "/welcome"


@pytest.mark.parametrize("server", ["vendor", "provider"])
def test_a_redirect_to_another_origin_of_loopback_gets_nothing(sandbox, open_form, server):
    elsewhere = getattr(sandbox, server)
    form = form_of(CaptchaType.TURNSTILE, f"/redirect?to={elsewhere}/turnstile")

    with pytest.raises(ScopeDenied, match=f"{elsewhere}/turnstile is not authorised, and nothing was sent"):
        open_form(form, sandbox.site)


def test_a_redirect_on_the_site_is_followed(sandbox, open_form):
    opened = open_form(form_of(CaptchaType.TURNSTILE, "/redirect?to=/turnstile"), sandbox.site)

    assert opened.page.path == "/turnstile"


@pytest.mark.parametrize(
    ("kind", "path", "pair", "action"),
    [
        (CaptchaType.RECAPTCHA_V2, "/recaptcha-v2", keys.RECAPTCHA_V2, None),
        (CaptchaType.RECAPTCHA_V3, "/recaptcha-v3", keys.RECAPTCHA_V3, "contact"),
        (CaptchaType.TURNSTILE, "/turnstile", keys.TURNSTILE, "login"),
        (CaptchaType.GEETEST_V3, "/geetest-v3", keys.GEETEST_V3, None),
        (CaptchaType.RECAPTCHA_ENTERPRISE, "/recaptcha-enterprise", ENTERPRISE, "transfer"),
        (CaptchaType.HCAPTCHA, "/hcaptcha", keys.HCAPTCHA, None),
        (CaptchaType.GEETEST_V4, "/geetest-v4", keys.GEETEST_V4, None),
        (CaptchaType.FRIENDLY_V2, "/friendly-v2", keys.FRIENDLY_V2, None),
    ],
)
def test_the_vendor_stand_in_confirms_a_token_once(sandbox, client, open_form, solve, kind, path, pair, action):
    form = form_of(kind, path, verify=VerifySpec(via=VerifyVia.SITEVERIFY), action=action, min_score=0.5)
    challenge = open_form(form, sandbox.site).challenge
    solution = solve(challenge)
    verifier = SiteVerifier(client, secret=lambda: pair.secret, source=TokenSource.SANDBOX, stand_in=sandbox.vendor)
    grants = grants_for(sandbox.site)

    first = verifier.verify(form, challenge, solution, {}, grants, deadline())
    again = verifier.verify(form, challenge, solution, {}, grants, deadline())

    assert (first.status, again.status) == (VerifyStatus.PASS, VerifyStatus.FAIL)


# -- a site that misbehaves


@dataclass
class Seen:
    """What the small site received."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class SmallSite:
    """Answers every request with prepared bytes by method, and closes the connection."""

    url: str = ""
    answers: dict[str, bytes] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)

    def page(self, name: str, *headers: str) -> None:
        body = (PAGES / f"{name}.html").read_bytes()
        lines = ["HTTP/1.1 200 OK", "Content-Type: text/html", f"Content-Length: {len(body)}", *headers]
        self.answers["GET"] = "\r\n".join([*lines, "", ""]).encode() + body


@pytest.fixture
def small() -> Iterator[SmallSite]:
    site = SmallSite()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            site.seen.append(Seen(self.command, self.path, dict(self.headers), body))
            head, blank, rest = site.answers.get(self.command, b"").partition(b"\r\n\r\n")
            self.wfile.write(head + (b"\r\nConnection: close" if blank else b"") + blank + rest)
            self.close_connection = True

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield site
        server.shutdown()


SPEC = FormSpec("form", "/signup", CaptchaType.TURNSTILE, Rule(status=(303,)))
SOLUTION = Solution({"token": "t"}, user_agent="Solver/1", cookies={"from_solver": "1"})


def test_cookies_marks_and_the_solutions_user_agent_reach_the_site(small, open_form):
    small.page("turnstile", "Set-Cookie: session=s1; Path=/; HttpOnly")
    small.answers["POST"] = b"HTTP/1.1 303 See Other\r\nLocation: /welcome\r\nContent-Length: 0\r\n\r\n"
    answer = open_form(SPEC, small.url).submit(SOLUTION, {}, grants_for(small.url), deadline())
    get, post = small.seen

    assert (answer.status, str(answer.location)) == (303, f"{small.url}/welcome")
    assert set(post.headers["Cookie"].split("; ")) == {"session=s1", "from_solver=1"}
    assert (get.headers["X-Captcha-QA-Run"], post.headers["X-Captcha-QA-Run"]) == ("run-1", "run-1")
    assert (post.headers["User-Agent"], post.headers["Origin"]) == ("Solver/1", small.url)
    assert post.headers["Referer"] == f"{small.url}/signup"
    assert "Solver" not in get.headers["User-Agent"]
    assert post.body.endswith(b"&cf-turnstile-response=t")


def test_a_multipart_form_arrives_as_multipart(small, open_form):
    small.page("multipart")
    small.answers["POST"] = b"HTTP/1.1 303 See Other\r\nLocation: /w\r\nContent-Length: 0\r\n\r\n"
    open_form(SPEC, small.url).submit(SOLUTION, {"name": "Ä"}, grants_for(small.url), deadline())
    post = small.seen[-1]

    assert post.headers["Content-Type"].startswith("multipart/form-data; boundary=")
    assert 'name="name"\r\n\r\nÄ\r\n'.encode() in post.body
    assert b'name="avatar"; filename=""' in post.body
    assert b'name="cf-turnstile-response"\r\n\r\nt\r\n' in post.body


def test_a_page_that_ends_early_is_not_read_as_a_page(small, open_form):
    small.answers["GET"] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9999\r\n\r\n<form>"

    with pytest.raises(TargetUnavailable):
        open_form(SPEC, small.url)


def test_a_page_without_end_is_an_error_of_the_page(small, open_form):
    small.answers["GET"] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + b"<p>" * 800_000

    with pytest.raises(PageError, match="larger than is read"):
        open_form(SPEC, small.url)


def test_a_connection_that_is_cut_after_the_submit_may_have_carried_the_token(small, open_form):
    small.page("turnstile")
    opened = open_form(SPEC, small.url)

    with pytest.raises(TargetUnavailable) as caught:
        opened.submit(SOLUTION, {}, grants_for(small.url), deadline())
    assert caught.value.sent
    assert small.seen[-1].method == "POST"


def test_a_connection_that_is_refused_carried_nothing(small, open_form):
    small.page("turnstile")
    with socket.create_server(("127.0.0.1", 0)) as held:
        free = held.getsockname()[1]
    body = (PAGES / "turnstile.html").read_text().replace('"/signup"', f'"http://127.0.0.1:{free}/signup"')
    small.answers["GET"] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body.encode()
    rules = ScopeRules(
        "demo",
        EnvKind.DEMO,
        (OriginPattern.parse(small.url), OriginPattern.parse(f"http://127.0.0.1:{free}")),
        TokenSource.SANDBOX,
    )
    grants = Grants(rules, NoProof(), SystemClock())  # type: ignore[arg-type]
    opened = HttpFormDriver(HttpClient).open(SPEC, Url.parse(f"{small.url}/signup"), grants, deadline())

    with pytest.raises(TargetUnavailable) as caught:
        opened.submit(SOLUTION, {}, grants, deadline())
    assert not caught.value.sent
