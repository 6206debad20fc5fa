"""The transport against servers that misbehave, on loopback."""

from __future__ import annotations

import logging
import os
import socket
import ssl
import struct
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import trustme

from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import CaptchaQAError, ScopeDenied, TransportError
from pytest_captcha_qa.model.form import EnvKind
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.scope import Evidence, OriginPattern, ScopeGrant, ScopeRules, TokenSource, check
from pytest_captcha_qa.transport import HttpAccess, HttpClient, Payload, Reply, urlencoded
from pytest_captcha_qa.transport.watchdog import Watchdog

SECRET = "k3y-that-must-never-be-shown"
PATIENCE = 0.6  # seconds given to a call that will not be answered
Handler = Callable[[socket.socket, bytes], None]


class Server:
    """A TCP server that hands every request's bytes to a handler, one thread a connection."""

    def __init__(self, handler: Handler, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self._handler = handler
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = [self._listener]
        self._closing = False
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                self.connections += 1
                self._open.append(sock)
                threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        tls = self._tls
        with suppress(OSError), sock, tls.wrap_socket(sock, server_side=True) if tls else sock as talk:
            while request := _read_request(talk):
                self.requests.append(request)
                self._handler(talk, request)

    def close(self) -> None:
        for sock in self._open:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()


def _read_request(sock: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = sock.recv(4096)
        if not chunk:
            return b""
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(it[15:]) for it in head.lower().split(b"\r\n") if it.startswith(b"content-length:")), 0)
    while len(body) < length:
        body += sock.recv(4096)
    return head + b"\r\n\r\n" + body


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(handler: Handler, tls: ssl.SSLContext | None = None) -> Server:
        servers.append(Server(handler, tls))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def answering(body: bytes = b"fine", *headers: str, status: str = "200 OK") -> Handler:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    answer = "\r\n".join(lines).encode() + body
    return lambda sock, request: sock.sendall(answer)


def dripping(head: bytes) -> Handler:
    def handle(sock: socket.socket, request: bytes) -> None:
        sock.sendall(head)
        while not threading.Event().wait(0.03):
            sock.sendall(b"x")

    return handle


def resetting(head: bytes) -> Handler:
    def handle(sock: socket.socket, request: bytes) -> None:
        sock.sendall(head)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()

    return handle


def grant(url: str) -> ScopeGrant:
    origin = OriginPattern(Url.parse(url).origin)
    granted = check(url, ScopeRules("demo", EnvKind.DEMO, (origin,), TokenSource.SANDBOX), None)
    assert isinstance(granted, ScopeGrant)
    return granted


def get(url: str, *, client: HttpClient | None = None, seconds: float = 5.0, limit: int = 65536) -> Reply:
    deadline = Deadline(seconds, what="the test")
    return (client or HttpClient()).request("GET", Url.parse(url), deadline=deadline, grant=grant(url), limit=limit)


def failure_of(url: str, **options: object) -> TransportError:
    with pytest.raises(TransportError) as caught:
        get(url, **options)  # type: ignore[arg-type]
    return caught.value


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"


@pytest.mark.parametrize(
    "handler",
    [
        pytest.param(lambda sock, request: threading.Event().wait(9), id="never answers"),
        pytest.param(dripping(b"HTTP/1.1 200 OK\r\nX-Slow: "), id="drips headers"),
        pytest.param(dripping(HEAD), id="drips a body of known length"),
        pytest.param(dripping(b"HTTP/1.1 200 OK\r\n\r\n"), id="drips a body that ends with the connection"),
        pytest.param(dripping(b"HTTP/1.1 100 Continue\r\n\r\n"), id="drips after an interim answer"),
    ],
)
def test_a_call_is_over_by_its_deadline_whatever_is_dripped(serve: Callable[..., Server], handler: Handler) -> None:
    server = serve(handler)
    started = time.monotonic()

    failure = failure_of(server.url, seconds=PATIENCE, limit=10**9)

    took = time.monotonic() - started
    assert (failure.kind, failure.sent) == ("timeout", True)
    assert took < PATIENCE * 1.5


def test_a_tls_handshake_that_drips_ends_in_time_and_sent_nothing(serve: Callable[..., Server]) -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        with suppress(OSError):
            sock, _ = listener.accept()
            with sock:
                sock.sendall(b"\x16\x03\x03\x3f\xff")
                while not threading.Event().wait(0.03):
                    sock.sendall(b"\x02")

    threading.Thread(target=drip, daemon=True).start()
    started = time.monotonic()

    failure = failure_of(f"https://127.0.0.1:{listener.getsockname()[1]}", seconds=PATIENCE)

    listener.close()
    assert time.monotonic() - started < PATIENCE * 1.5
    assert (failure.kind, failure.sent) == ("timeout", False)


def test_a_request_that_the_peer_never_reads_ends_in_time() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    url = Url.parse(f"http://127.0.0.1:{listener.getsockname()[1]}/")
    started = time.monotonic()

    with listener, pytest.raises(TransportError) as caught:
        HttpClient().request(
            "POST",
            url,
            deadline=Deadline(PATIENCE, what="the test"),
            grant=None,
            payload=urlencoded([("a", "x" * 30_000_000)]),
        )

    assert caught.value.kind == "timeout"
    assert time.monotonic() - started < PATIENCE * 2


@pytest.mark.parametrize("head", [b"", HEAD + b"part", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"])
def test_a_connection_reset_before_the_answer_is_complete_is_a_reset(serve: Callable[..., Server], head: bytes) -> None:
    failure = failure_of(serve(resetting(head)).url)

    assert (failure.kind, failure.sent) == ("reset", True)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 303 See Other\r\n",
        b"HTTP/1.1 303 See Other\r\nLocat",
        b"HTTP/1.1 303 See Other\r\nLocation: /wel",
        b"HTTP/1.1 303 See Other\r\nLocation: /welcome\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n",
    ],
)
def test_a_head_that_breaks_off_is_no_answer(serve: Callable[..., Server], head: bytes) -> None:
    failure = failure_of(serve(lambda sock, request: (sock.sendall(head), sock.close())).url)

    assert (failure.kind, failure.sent) == ("reset", True)


def test_a_head_whose_lines_end_without_a_carriage_return_is_read(serve: Callable[..., Server]) -> None:
    reply = get(serve(lambda sock, request: sock.sendall(b"HTTP/1.1 200 OK\nContent-Length: 4\n\nfine")).url)

    assert (reply.status, reply.body) == (200, b"fine")


@pytest.mark.parametrize(
    "answer",
    [
        b"this is not HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 4\r\n\r\nnope",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip, gzip\r\nContent-Length: 4\r\n\r\nnope",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\nabcd",
    ],
    ids=[
        "no http",
        "huge header",
        "too many headers",
        "bad gzip",
        "encoding nobody asked for",
        "nested encodings",
        "lengths",
    ],
)
def test_an_answer_that_is_not_http_is_unreadable(serve: Callable[..., Server], answer: bytes) -> None:
    failure = failure_of(serve(lambda sock, request: (sock.sendall(answer), sock.close())).url)

    assert failure.kind == "unreadable"


def _bomb(size: int, wbits: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    block = bytes(1024 * 1024)
    return b"".join(packer.compress(block) for _ in range(size // len(block))) + packer.flush()


@pytest.mark.parametrize(("encoding", "wbits"), [("gzip", 31), ("deflate", 15), ("deflate", -15)])
def test_a_small_body_that_unpacks_to_gigabytes_ends_at_the_limit(
    serve: Callable[..., Server], encoding: str, wbits: int
) -> None:
    bomb = _bomb(256 * 1024 * 1024, wbits)
    server = serve(answering(bomb, f"Content-Encoding: {encoding}"))
    tracemalloc.start()

    failure = failure_of(server.url)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert failure.kind == "too_large"
    assert peak < 16 * 1024 * 1024


def test_a_body_longer_than_the_limit_is_too_large_and_one_as_long_is_read(
    serve: Callable[..., Server],
) -> None:
    server = serve(answering(b"x" * 1000))

    assert len(get(server.url, limit=1000).body) == 1000
    assert failure_of(server.url, limit=999).kind == "too_large"


def test_a_redirect_is_returned_and_not_followed(serve: Callable[..., Server]) -> None:
    server = serve(answering(b"", "Location: /next?a=b", status="302 Found"))

    reply = get(server.url + "/first")

    assert (reply.status, reply.location) == (302, "/next?a=b")
    assert len(server.requests) == 1


def test_a_refused_connection_sent_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    failure = failure_of(f"http://127.0.0.1:{port}/")

    assert (failure.kind, failure.sent) == ("refused", False)


def test_a_name_that_does_not_resolve_is_a_dns_failure() -> None:
    with pytest.raises(TransportError) as caught:
        HttpClient().request(
            "GET", Url.parse("http://nowhere.invalid/"), deadline=Deadline(5, what="the test"), grant=None
        )

    assert (caught.value.kind, caught.value.sent) == ("dns", False)


def test_a_resolver_that_hangs_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: release.wait(9) and [])
    started = time.monotonic()

    with pytest.raises(TransportError) as caught:
        HttpClient().request(
            "GET", Url.parse("http://slow.example/"), deadline=Deadline(PATIENCE, what="the test"), grant=None
        )

    release.set()
    assert (caught.value.kind, caught.value.sent) == ("dns", False)
    assert time.monotonic() - started < PATIENCE * 1.5


def test_localhost_that_leads_to_another_machine_is_denied_before_anything_is_sent(
    serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(answering())
    port = int(server.url.rpartition(":")[2])
    # The kernel sends 0.0.0.0 to this machine, but it is not a loopback address.
    elsewhere = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: [elsewhere])
    monkeypatch.setattr(socket.socket, "getpeername", lambda self: ("192.0.2.7", port))

    with pytest.raises(ScopeDenied) as denied:
        get(f"http://localhost:{port}/")

    assert denied.value.reason == "not_loopback"
    assert server.requests == []


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[trustme.CA, Path]:
    ca = trustme.CA()
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    ca.cert_pem.write_to_path(str(path))
    return ca, path


def _tls(ca: trustme.CA, name: str = "127.0.0.1") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(name).configure_cert(context)
    return context


def test_a_private_authority_is_trusted_when_its_file_is_given(
    serve: Callable[..., Server], authority: tuple[trustme.CA, Path]
) -> None:
    ca, path = authority
    server = serve(answering(b"private"), _tls(ca))
    client = HttpClient(HttpAccess(ca_file=str(path)))

    bodies = [get(server.url, client=client).body for _ in range(2)]

    assert bodies == [b"private", b"private"]
    assert server.connections == 1


@pytest.mark.parametrize("trusted", [False, True])
def test_a_certificate_that_does_not_fit_ends_the_call_before_anything_is_sent(
    serve: Callable[..., Server], authority: tuple[trustme.CA, Path], *, trusted: bool
) -> None:
    ca, path = authority
    server = serve(answering(), _tls(ca, "other.example") if trusted else _tls(ca))
    access = HttpAccess(ca_file=str(path)) if trusted else HttpAccess()

    failure = failure_of(server.url, client=HttpClient(access))

    assert (failure.kind, failure.sent) == ("tls", False)
    assert server.requests == []


def test_a_dripping_answer_over_a_reused_tls_connection_ends_in_time(
    serve: Callable[..., Server], authority: tuple[trustme.CA, Path]
) -> None:
    ca, path = authority
    drip, answer = dripping(HEAD), answering()
    server = serve(lambda sock, request: (drip if b"/slow" in request else answer)(sock, request), _tls(ca))
    client = HttpClient(HttpAccess(ca_file=str(path)))
    get(server.url, client=client)
    started = time.monotonic()

    failure = failure_of(server.url + "/slow", client=client, seconds=PATIENCE, limit=10**9)

    assert (failure.kind, server.connections) == ("timeout", 1)
    assert time.monotonic() - started < PATIENCE * 1.5


def test_the_client_certificate_goes_along(serve: Callable[..., Server], tmp_path: Path) -> None:
    ca = trustme.CA()
    context = _tls(ca)
    context.verify_mode = ssl.CERT_REQUIRED
    ca.configure_trust(context)
    server = serve(answering(), context)
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    ca.issue_cert("qa@shop.example").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "client.pem"))
    access = HttpAccess(ca_file=str(tmp_path / "ca.pem"), client_cert_file=str(tmp_path / "client.pem"))

    assert get(server.url, client=HttpClient(access)).status == 200


def test_marks_and_credentials_go_to_granted_targets_only(serve: Callable[..., Server]) -> None:
    server = serve(answering())
    access = HttpAccess({"X-Gate": SECRET}, {"gate": SECRET}, ("qa", SECRET))
    client = HttpClient(access, marks={"X-Run": "r1"}, user_agent="harness")

    get(server.url, client=client)
    client.request("GET", Url.parse(server.url), deadline=Deadline(5, what="the test"), grant=None)

    granted, other = (it.decode().lower() for it in server.requests)
    for header in ("x-gate:", "x-run: r1", "authorization: basic", f"cookie: gate={SECRET}"):
        assert header in granted
    for header in ("x-gate", "x-run", "authorization", "cookie", SECRET):
        assert header not in other
    assert "user-agent: harness" in granted
    assert "user-agent: harness" in other


def test_cookies_return_to_the_port_that_set_them_and_to_no_other(serve: Callable[..., Server]) -> None:
    one = serve(answering(b"", "Set-Cookie: session=one; Path=/; HttpOnly"))
    other = serve(answering())
    session = HttpClient().new_session()

    for url in (one.url, one.url, other.url):
        get(url, client=session)

    assert b"session=one" in one.requests[1]
    assert b"Cookie" not in one.requests[0] + other.requests[0]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_remembered_cookies_are_sent(serve: Callable[..., Server], host: str) -> None:
    server = serve(answering())
    url = server.url.replace("127.0.0.1", host)
    session = HttpClient().new_session()
    session.remember(Url.parse(url).origin, {"session": "kept"})

    get(url, client=session)

    assert b"Cookie: session=kept" in server.requests[0]


def test_environment_variables_neither_add_a_proxy_nor_a_password(
    serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = serve(answering())
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password hidden\n")
    for name, value in (
        ("HTTP_PROXY", "http://127.0.0.1:1"),
        ("ALL_PROXY", "http://127.0.0.1:1"),
        ("HOME", tmp_path),
    ):
        monkeypatch.setenv(name, str(value))

    get(server.url)

    assert b"authorization" not in server.requests[0].lower()


def test_loopback_is_reached_without_the_configured_proxy(serve: Callable[..., Server]) -> None:
    server, proxy = serve(answering()), serve(answering(b"proxied"))

    reply = get(server.url, client=HttpClient(HttpAccess(proxy=proxy.url)))

    assert reply.body == b"fine"
    assert proxy.requests == []


def _live_grant(page: Url) -> ScopeGrant:
    pattern = OriginPattern(page.origin)
    proof = Evidence(page.origin, 0.0, (pattern,), EnvKind.QA, 1000.0)
    rules = ScopeRules("qa", EnvKind.QA, (pattern,), TokenSource.LIVE)
    granted = check(page, rules, proof, monotonic=lambda: 0.0, utc=lambda: 0.0)
    assert isinstance(granted, ScopeGrant)
    return granted


def _through(proxy: str, page: Url) -> Reply:
    client = HttpClient(HttpAccess(proxy=proxy))
    return client.request("GET", page, deadline=Deadline(5, what="the test"), grant=_live_grant(page))


def test_a_target_elsewhere_is_reached_through_the_configured_proxy(serve: Callable[..., Server]) -> None:
    proxy = serve(answering(b"proxied"))

    reply = _through(proxy.url.replace("//", f"//qa:{SECRET}@"), Url.parse("http://shop.example/signup?a=b"))

    assert reply.body == b"proxied"
    assert proxy.requests[0].startswith(b"GET http://shop.example/signup?a=b HTTP/1.1")
    assert b"Proxy-Authorization: Basic " in proxy.requests[0]


def test_a_proxy_that_refuses_the_way_is_named_and_got_no_request(serve: Callable[..., Server]) -> None:
    proxy = serve(answering(b"", status="407 Proxy Authentication Required"))

    with pytest.raises(TransportError) as caught:
        _through(proxy.url, Url.parse("https://shop.example/signup?a=b"))

    assert (caught.value.kind, caught.value.sent) == ("proxy", False)
    assert b"signup" not in proxy.requests[0]


def test_a_provider_is_not_reached_through_the_environments_proxy(serve: Callable[..., Server]) -> None:
    proxy = serve(answering())

    with pytest.raises(TransportError, match="host name"):
        HttpClient(HttpAccess(proxy=proxy.url)).request(
            "GET", Url.parse("http://provider.invalid/"), deadline=Deadline(5, what="the test"), grant=None
        )

    assert proxy.requests == []


def test_a_secure_cookie_returns_to_this_machine_without_tls(serve: Callable[..., Server]) -> None:
    server = serve(answering(b"", "Set-Cookie: session=safe; Secure; HttpOnly"))
    session = HttpClient().new_session()

    for _ in range(2):
        get(server.url, client=session)

    assert b"session=safe" in server.requests[1]


@pytest.mark.parametrize("strange", ["Set-Cookie: a=b; Max-Age", "Set-Cookie2: a=b; expires=*", "Set-Cookie: ;=;"])
def test_a_cookie_the_library_stumbles_over_neither_warns_nor_hides_the_others(
    serve: Callable[..., Server], strange: str
) -> None:
    server = serve(answering(b"", strange, "Set-Cookie: session=kept; HttpOnly"))
    session = HttpClient().new_session()

    for _ in range(2):
        get(server.url, client=session)

    assert b"session=kept" in server.requests[1]


def test_a_header_that_cannot_be_written_sends_nothing(serve: Callable[..., Server]) -> None:
    server = serve(answering())

    for value in (f"line\r\nbreak {SECRET}", f"€ {SECRET}"):
        with pytest.raises(TransportError) as caught:
            HttpClient().request(
                "GET", Url.parse(server.url), deadline=Deadline(5, what="the test"), grant=grant(server.url),
                payload=Payload(headers={"X-Page": value}),
            )  # fmt: skip
        assert caught.value.kind == "request"
        assert SECRET not in str(caught.value)

    assert server.requests == []


def test_a_connection_that_was_used_just_now_is_used_again(serve: Callable[..., Server]) -> None:
    server = serve(answering())
    client = HttpClient()

    for session in (client.new_session(), client.new_session(), client):
        get(server.url, client=session)

    assert server.connections == 1


def test_a_connection_that_was_idle_for_a_while_is_not_used_again(
    serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(answering())
    client = HttpClient()
    monkeypatch.setattr("pytest_captcha_qa.transport.connections._REUSE_SECONDS", 0.0)

    for _ in range(2):
        get(server.url, client=client)

    assert server.connections == 2


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("status", ["100 Continue", "102 Processing", "103 Early Hints"])
def test_what_only_announces_an_answer_is_not_the_answer(serve: Callable[..., Server], status: str, times: int) -> None:
    announcement = f"HTTP/1.1 {status}\r\nLink: </style.css>; rel=preload\r\n\r\n".encode()

    def announcing(sock: socket.socket, request: bytes) -> None:
        for _ in range(times):
            sock.sendall(announcement)
        answering(b"OK|" + request.split(b" ")[1])(sock, request)

    server, client = serve(announcing), HttpClient()

    bodies = [get(f"{server.url}/{number}", client=client).body for number in range(2)]

    assert (bodies, server.connections) == ([b"OK|/0", b"OK|/1"], 1)


def test_announcements_without_an_end_end_in_time(serve: Callable[..., Server]) -> None:
    def announcing(sock: socket.socket, request: bytes) -> None:
        while not threading.Event().wait(0.01):
            sock.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")

    assert failure_of(serve(announcing).url).kind == "timeout"


def test_a_connection_closed_by_the_server_is_replaced(serve: Callable[..., Server]) -> None:
    server = serve(lambda sock, request: (answering()(sock, request), sock.close()))
    client = HttpClient()

    get(server.url, client=client)
    threading.Event().wait(0.05)

    assert get(server.url, client=client).status == 200


def test_a_post_whose_connection_breaks_is_sent_once(serve: Callable[..., Server]) -> None:
    server = serve(resetting(b""))

    with pytest.raises(TransportError):
        HttpClient().request(
            "POST",
            Url.parse(server.url),
            deadline=Deadline(5, what="the test"),
            grant=None,
            payload=urlencoded([("a", "b")]),
        )

    assert len(server.requests) == 1


def _chain(error: BaseException) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__  # type: ignore[assignment]


@pytest.mark.parametrize("handler", [resetting(b""), resetting(HEAD), answering(b"x" * 99_999)])
def test_a_failure_carries_neither_the_key_nor_the_body(serve: Callable[..., Server], handler: Handler) -> None:
    url = Url.parse(serve(handler).url + f"/in.php?key={SECRET}")

    with pytest.raises(CaptchaQAError) as caught:
        HttpClient(marks={"X": "y"}).request(
            "POST",
            url,
            deadline=Deadline(5, what="the test"),
            grant=None,
            limit=1000,
            payload=urlencoded([("key", SECRET)]).having({"Authorization": SECRET}),
        )

    assert list(_chain(caught.value)) == [caught.value]
    assert SECRET not in str(caught.value)
    frame = caught.value.__traceback__
    while frame is not None:
        assert SECRET not in repr(frame.tb_frame.f_locals)
        frame = frame.tb_next


def test_no_log_record_shows_a_query(
    serve: Callable[..., Server], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A test before this one, in the same process, may have configured logging anew and thereby silenced the library.
    monkeypatch.setattr(logging.getLogger("urllib3.connectionpool"), "disabled", False)
    malformed = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nno colon in here\r\n\r\n"
    server = serve(lambda sock, request: sock.sendall(malformed))

    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, logger="urllib3.connectionpool"):
        get(f"{server.url}/res.php?key={SECRET}")

    assert "/res.php" in caplog.text
    assert SECRET not in caplog.text


def test_fifty_calls_at_once_end_each_by_its_own_deadline(serve: Callable[..., Server]) -> None:
    drip, answer = dripping(HEAD), answering()
    server = serve(lambda sock, request: (drip if b"/slow" in request else answer)(sock, request))
    client = HttpClient()

    def call(number: int) -> tuple[str, float]:
        started = time.monotonic()
        path, seconds = ("/slow", PATIENCE) if number % 2 else ("/", 10.0)
        try:
            get(server.url + path, client=client.new_session(), seconds=seconds, limit=10**9)
        except TransportError as error:
            return error.kind, time.monotonic() - started
        return "fine", time.monotonic() - started

    with ThreadPoolExecutor(50) as pool:
        results = list(pool.map(call, range(50)))

    assert [kind for kind, _ in results] == ["fine", "timeout"] * 25
    assert max(took for kind, took in results if kind == "timeout") < PATIENCE * 1.5 + 0.5


def test_the_watchdog_gives_its_duplicates_back(serve: Callable[..., Server]) -> None:
    server = serve(answering(b"", "Connection: close"))
    client = HttpClient()
    get(server.url, client=client)
    before = len(os.listdir("/proc/self/fd"))

    for _ in range(20):
        get(server.url, client=client)

    assert len(os.listdir("/proc/self/fd")) <= before + 4  # the server's side closes in its own time


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_has_a_watchdog_and_connections_of_its_own(serve: Callable[..., Server]) -> None:
    drip, answer = dripping(HEAD), answering()
    server = serve(lambda sock, request: (drip if b"/slow" in request else answer)(sock, request))
    client = HttpClient()
    get(server.url, client=client)

    child = os.fork()
    if child == 0:
        fine = get(server.url, client=client).status == 200
        try:
            get(server.url + "/slow", client=client, seconds=PATIENCE, limit=10**9)
        except TransportError as error:
            fine = fine and error.kind == "timeout"
        os._exit(0 if fine else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert server.connections >= 2
    assert get(server.url, client=client).status == 200


def test_the_watchdog_starts_again_after_it_ended() -> None:
    dog = Watchdog()
    dog.reset()
    ours, theirs = socket.socketpair()

    with ours, theirs, dog.watch(0.05) as watch:
        watch.hold(ours)

        assert theirs.recv(1) == b""
        assert watch.fired
