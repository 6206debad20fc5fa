"""The sandbox as it is used: a process of its own, on real sockets of loopback."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import requests

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.sandbox.audit import fingerprint
from pytest_captcha_qa.sandbox.server import SandboxAddresses, SandboxProcess

SERVER = [sys.executable, "-m", "pytest_captcha_qa.sandbox.server"]
KEY = "a" * 32
WAIT = 10.0


@pytest.fixture(scope="module")
def running() -> Iterator[SandboxAddresses]:
    with SandboxProcess() as sandbox:
        yield sandbox.start(time_scale=0.001, seed=1)


@pytest.fixture
def sandbox(running: SandboxAddresses) -> Iterator[SandboxAddresses]:
    """Yield the sandbox with nothing counted and no fault on."""
    requests.post(f"{running.audit}/reset", timeout=WAIT).raise_for_status()
    yield running
    requests.post(f"{running.audit}/reset", timeout=WAIT).raise_for_status()


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return a function that starts the server program; all are killed in the end."""
    with contextlib.ExitStack() as stack:

        def start(*arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
            process = stack.enter_context(
                subprocess.Popen(
                    [*SERVER, *arguments],
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            stack.callback(process.kill)
            return process

        yield start


def counts(sandbox: SandboxAddresses) -> Any:
    return requests.get(sandbox.audit, timeout=WAIT).json()


def switch_on(sandbox: SandboxAddresses, server: str, *faults: dict[str, Any]) -> None:
    message = {"faults": {server: list(faults)}}
    requests.post(f"{sandbox.audit}/control", json=message, timeout=WAIT).raise_for_status()


def submit(sandbox: SandboxAddresses, page: str, **parameters: str) -> str:
    fields = {"key": KEY, "json": "1", "pageurl": f"{sandbox.site}{page}", **parameters}
    reply = requests.post(f"{sandbox.provider}/in.php", data=fields, timeout=WAIT).json()
    assert reply["status"] == 1
    return str(reply["request"])


def result(sandbox: SandboxAddresses, task_id: str) -> Any:
    """Poll, without a pause, until the task is solved."""
    query = {"key": KEY, "json": "1", "action": "get", "id": task_id}
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        reply = requests.get(f"{sandbox.provider}/res.php", params=query, timeout=WAIT).json()
        if reply["request"] != "CAPCHA_NOT_READY":
            return reply["request"]
    raise AssertionError("the task was not solved in time")


def ends_within(seconds: float, pid: int) -> bool:
    """Tell whether a process that is no child of ours ends in time; a zombie has ended."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        pause.wait(0.02)
    return False


FORMS = {
    "recaptcha-v2": (
        {"method": "userrecaptcha"},
        "googlekey",
        r'data-sitekey="([^"]+)"',
        "g-recaptcha-response",
    ),
    "recaptcha-v3": (
        {"method": "userrecaptcha", "version": "v3", "action": "contact"},
        "googlekey",
        r'\?render=([^"]+)"',
        "g-recaptcha-response",
    ),
    "turnstile": (
        {"method": "turnstile", "action": "login"},
        "sitekey",
        r'data-sitekey="([^"]+)"',
        "cf-turnstile-response",
    ),
    "geetest-v3": ({"method": "geetest"}, "gt", r'data-gt="([^"]+)"', ""),
}


@pytest.mark.parametrize("slug", FORMS)
def test_a_form_is_opened_solved_submitted_and_refuses_the_replay(sandbox: SandboxAddresses, slug: str) -> None:
    parameters, key_name, key_pattern, token_field = FORMS[slug]
    with requests.Session() as visitor:
        page = visitor.get(f"{sandbox.site}/{slug}", timeout=WAIT).text
        found = dict(re.findall(r'data-(challenge)="([^"]+)"', page))
        found[key_name] = re.findall(key_pattern, page)[0]
        task_id = submit(sandbox, f"/{slug}", **parameters, **found)
        answer = result(sandbox, task_id)
        token = answer if token_field else answer["validate"]
        solved = {token_field: token} if token_field else {f"geetest_{k}": v for k, v in answer.items()}
        csrf = re.findall(r'name="csrf_token" value="([^"]+)"', page)[0]
        posted = {"csrf_token": csrf, "email": "ann@example.com", "name": "Ann", **solved}
        replies = [
            visitor.post(f"{sandbox.site}/{slug}", data=posted, allow_redirects=False, timeout=WAIT) for _ in range(2)
        ]
    assert [reply.status_code for reply in replies] == [303, 422]
    seen = counts(sandbox)
    assert (seen["provider"]["submits"], seen["provider"]["tasks"][task_id]["reads"]) == (1, 1)
    assert seen["site"]["accepted"] == seen["site"]["refused"] == {slug: 1}
    assert seen["site"]["posts_by_token"] == {fingerprint(token): 2}
    assert token not in json.dumps(seen)


def test_200_polls_at_once_are_all_answered_alike(sandbox: SandboxAddresses) -> None:
    task_id = submit(sandbox, "/turnstile", method="turnstile", sitekey="0x4AAAAAAASANDBOXlogin01")
    token = result(sandbox, task_id)
    before = counts(sandbox)["provider"]["tasks"][task_id]["reads"]
    with ThreadPoolExecutor(50) as pool:
        answers = set(pool.map(lambda _: result(sandbox, task_id), range(200)))
    assert answers == {token}
    assert counts(sandbox)["provider"]["tasks"][task_id]["reads"] == before + 200


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "status", "status": 502},
        {"kind": "html200"},
        {"kind": "empty"},
        {"kind": "reset"},
    ],
    ids=lambda fault: fault["kind"],
)
def test_the_site_closes_its_form_when_the_vendor_fails(sandbox: SandboxAddresses, fault: dict[str, Any]) -> None:
    switch_on(sandbox, "vendor", {**fault, "path": "/register.php"})
    assert requests.get(f"{sandbox.site}/geetest-v3", timeout=WAIT).status_code == 503
    assert requests.get(f"{sandbox.site}/turnstile", timeout=WAIT).status_code == 200


def test_reset_cuts_the_connection(sandbox: SandboxAddresses) -> None:
    switch_on(sandbox, "site", {"kind": "reset", "path": "/version", "count": 1})
    with pytest.raises(requests.ConnectionError, match="reset by peer"):
        requests.get(f"{sandbox.site}/version", timeout=WAIT)
    assert requests.get(f"{sandbox.site}/version", timeout=WAIT).json() == {"version": "1.0.0"}


def test_never_keeps_the_caller_waiting(sandbox: SandboxAddresses) -> None:
    switch_on(sandbox, "provider", {"kind": "never", "path": "/res.php"})
    with pytest.raises(requests.ReadTimeout):
        requests.get(f"{sandbox.provider}/res.php", timeout=0.3)


def test_delay_and_drip_make_an_answer_slow_but_whole(sandbox: SandboxAddresses) -> None:
    switch_on(sandbox, "site", {"kind": "delay", "seconds": 0.2}, {"kind": "drip", "seconds": 0.01})
    began = time.monotonic()
    reply = requests.get(f"{sandbox.site}/version", timeout=WAIT)
    assert reply.json() == {"version": "1.0.0"}
    assert time.monotonic() - began > 0.2 + 0.01 * len(reply.content)


def test_a_body_over_a_mebibyte_is_refused(sandbox: SandboxAddresses) -> None:
    for address in (
        sandbox.provider + "/in.php",
        sandbox.vendor + "/validate.php",
        sandbox.site + "/turnstile",
    ):
        assert requests.post(address, data=b"x" * (1024 * 1024 + 1), timeout=WAIT).status_code == 413


def test_a_name_that_is_not_loopback_is_refused_everywhere(sandbox: SandboxAddresses) -> None:
    for address in (sandbox.provider, sandbox.vendor, sandbox.site, sandbox.audit):
        reply = requests.get(address, headers={"Host": "shop.example"}, timeout=WAIT)
        assert reply.status_code == 421


@pytest.mark.parametrize(
    "rubbish",
    [
        b"\x16\x03\x01\x00\xa5junk\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
        b"POST /in.php HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=["tls", "two-hosts", "negative-length", "endless-path"],
)
def test_rubbish_on_the_wire_is_a_bad_request(sandbox: SandboxAddresses, rubbish: bytes) -> None:
    host, _, port = sandbox.provider.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=WAIT) as connection:
        connection.sendall(rubbish)
        assert connection.recv(64).startswith(b"HTTP/1.1 400 ")


def test_one_json_line_is_printed_and_nothing_else(started: Any) -> None:
    process = started("--json", "--time-scale", "0.5", "--site-release", "9.9")
    addresses = json.loads(process.stdout.readline())
    assert list(addresses) == ["provider", "vendor", "site", "audit", "time_scale", "provider_https", "ca_file"]
    assert (addresses["time_scale"], addresses["provider_https"], addresses["ca_file"]) == (0.5, None, None)
    assert len({addresses[name] for name in ("provider", "vendor", "site", "audit")}) == 4
    assert requests.get(addresses["site"] + "/version", timeout=WAIT).json() == {"version": "9.9"}
    process.terminate()
    assert process.communicate(timeout=WAIT) == ("", "")


def test_without_json_the_line_is_for_people(started: Any) -> None:
    process = started()
    assert re.fullmatch(r"sandbox ready: (\w+ http://127\.0\.0\.1:\d+ +){4}time scale 1\n", process.stdout.readline())


def test_the_provider_is_served_over_https_under_an_authority_that_ends_with_the_sandbox(started: Any) -> None:
    process = started("--json", "--https")
    addresses = SandboxAddresses(**json.loads(process.stdout.readline()))
    task_id = submit(addresses, "/turnstile", method="turnstile", sitekey="0x4AAAAAAASANDBOXlogin01")
    asked = {"key": KEY, "action": "get", "id": task_id}
    trusted = {"params": asked, "verify": addresses.ca_file, "timeout": WAIT}
    assert requests.get(f"{addresses.provider_https}/res.php", **trusted).text == "CAPCHA_NOT_READY"
    switch_on(addresses, "provider", {"kind": "reset"})
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{addresses.provider_https}/res.php", **trusted)
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(f"{addresses.provider_https}/res.php", params=asked, timeout=WAIT)
    pem = Path(addresses.ca_file)
    assert "PRIVATE KEY" not in pem.read_text()
    assert [path.name for path in pem.parent.iterdir()] == ["ca.pem"]
    process.terminate()
    process.communicate(timeout=WAIT)
    assert not pem.parent.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_quickly_with_calls_still_open(started: Any, number: signal.Signals) -> None:
    process = started("--json")
    addresses = SandboxAddresses(**json.loads(process.stdout.readline()))
    switch_on(addresses, "vendor", {"kind": "never"})
    with requests.Session() as idle, ThreadPoolExecutor(1) as pool:
        idle.get(f"{addresses.site}/healthz", timeout=WAIT)
        pending = pool.submit(requests.get, f"{addresses.site}/geetest-v3", timeout=WAIT)
        while not counts(addresses)["site"]["gets"]:
            pass
        began = time.monotonic()
        process.send_signal(number)
        assert process.wait(WAIT) == 0
        assert time.monotonic() - began < 3
        pending.exception(timeout=WAIT)
    assert process.stderr.read() == ""


def test_it_ends_with_its_piped_stdin(started: Any) -> None:
    process = started("--json", stdin=subprocess.PIPE)
    process.stdout.readline()
    process.stdin.write("what is written there is ignored")
    process.stdin.close()
    assert process.wait(WAIT) == 0


def test_it_outlives_a_stdin_that_is_no_pipe(started: Any) -> None:
    process = started("--json")
    address = json.loads(process.stdout.readline())["site"]
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    assert requests.get(f"{address}/healthz", timeout=WAIT).text == "ok\n"


@pytest.mark.skipif(not os.path.exists("/proc"), reason="looks at the process table")
def test_it_ends_when_its_parent_is_killed() -> None:
    program = """
import time
from pytest_captcha_qa.sandbox.server import SandboxProcess
sandbox = SandboxProcess()
print(sandbox.start(time_scale=1).site, sandbox._process.pid, flush=True)
input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout
        site, pid = parent.stdout.readline().split()
        assert requests.get(f"{site}/healthz", timeout=WAIT).ok
        parent.kill()
    assert ends_within(3, int(pid))


def test_a_port_gives_four_in_a_row_and_a_taken_one_exits_4(started: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = started("--port", str(port))
        out, err = process.communicate(timeout=WAIT)
    assert (process.returncode, out) == (4, "")
    assert f"port {port} on 127.0.0.1" in err


def test_ports_in_a_row_are_used_in_order(started: Any) -> None:
    first = free_row()
    process = started("--json", "--port", str(first))
    addresses = json.loads(process.stdout.readline())
    ports = [int(addresses[name].rpartition(":")[2]) for name in ("provider", "vendor", "site", "audit")]
    assert ports == [first, first + 1, first + 2, first + 3]


def free_row() -> int:
    """Return a port below the ephemeral range that is free, as are the three after it."""
    for first in range(20_000, 30_000, 7):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + 4):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise AssertionError("no four free ports in a row")


def test_a_process_that_does_not_start_says_why() -> None:
    with pytest.raises(ConfigError, match=r"(?s)did not start.*encodings"), SandboxProcess() as sandbox:
        sandbox.start(time_scale=1, env={"PYTHONHOME": "/nowhere"})


def test_a_given_pipe_ends_it_too() -> None:
    reader, writer = os.pipe()
    with SandboxProcess() as sandbox:
        site = sandbox.start(time_scale=1, stdin=reader).site
        os.close(reader)
        os.close(writer)
        assert sandbox._process
        assert sandbox._process.wait(WAIT) == 0
    with pytest.raises(requests.ConnectionError):
        requests.get(site, timeout=WAIT)


def test_stopping_ends_it() -> None:
    with SandboxProcess() as sandbox:
        site = sandbox.start(time_scale=1, site_release="1.1.0").site
        assert requests.get(f"{site}/version", timeout=WAIT).json() == {"version": "1.1.0"}
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{site}/healthz", timeout=WAIT)


def test_the_seed_repeats_solve_times_but_no_id_and_no_token() -> None:
    orders: list[list[int]] = []
    seen: set[str] = set()
    for _ in range(2):
        with SandboxProcess() as process:
            sandbox = process.start(time_scale=0, seed=5)
            ids = [submit(sandbox, "/x", method="turnstile", sitekey="s" * 20) for _ in range(4)]
            tokens = [result(sandbox, task_id) for task_id in ids]
        orders.append([int(later) - int(earlier) for earlier, later in pairwise(ids)])
        seen |= {*ids, *tokens}
    assert orders[0] == orders[1]
    assert len(seen) == 16
