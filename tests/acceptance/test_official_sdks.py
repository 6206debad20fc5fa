"""The official SDKs, unmodified from the registry, against the sandbox: each solves every type it has."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from faults.environment import Unavailable, python_with_sdks
from faults.programs import SDKS, Outcome, running_sdk
from faults.puzzles import PUZZLES, is_marked
from pytest_captcha_qa.sandbox.audit import fingerprint
from pytest_captcha_qa.sandbox.server import SandboxAddresses, SandboxProcess

_RECAPTCHA = ("recaptcha_v2", "recaptcha_v2_invisible", "recaptcha_v3", "recaptcha_enterprise")
_COMMON = (*_RECAPTCHA, "turnstile", "geetest_v3", "friendly_v2", "image")
TYPES = {
    "captchaai": _COMMON,
    "capskip": (*_COMMON, "altcha"),
    "twocaptcha": (*_COMMON, "altcha", "hcaptcha", "geetest_v4"),
}
DEADLINE = 20.0
LIMIT = 30.0  # seconds; CaptchaAI's SDK waits up to 16 before it polls reCAPTCHA for the first time


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxAddresses]:
    with SandboxProcess() as process:
        yield process.start(time_scale=0.01, seed=3, https=True)


@pytest.fixture(scope="module")
def sdks() -> None:
    try:
        python_with_sdks()
    except Unavailable as why:
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(f"the official SDKs cannot be installed: {why}")
        pytest.skip(f"the official SDKs cannot be installed: {why}")


@pytest.mark.usefixtures("sdks")
def test_the_official_sdks_solve_every_type_they_have(sandbox: SandboxAddresses, ask: Callable[..., Any]) -> None:
    began = time.monotonic()
    with ThreadPoolExecutor(len(SDKS)) as pool:
        solved = dict(zip(SDKS, pool.map(lambda name: solve_all(name, sandbox), SDKS), strict=True))
    wrong = {
        f"{name} {type_}": outcome
        for name, outcomes in solved.items()
        for type_, outcome in outcomes.items()
        if not is_marked(outcome.token)
    }
    assert not wrong
    assert {name: tuple(outcomes) for name, outcomes in solved.items()} == TYPES
    by_key = ask(sandbox.audit)["provider"]["by_key"]
    counts = {name: by_key[fingerprint(key_of(name))] for name in SDKS}
    assert {name: (it["submits"], it["reads"]) for name, it in counts.items()} == {
        name: (len(types), len(types)) for name, types in TYPES.items()
    }
    assert time.monotonic() - began < LIMIT


def solve_all(name: str, sandbox: SandboxAddresses) -> dict[str, Outcome]:
    """Let one SDK solve all its types at once."""
    assert sandbox.ca_file
    with running_sdk(name, ca_file=sandbox.ca_file) as sdk, ThreadPoolExecutor(len(PUZZLES)) as pool:
        outcomes = pool.map(lambda type_: sdk.solve(job(name, type_, sandbox), seconds=LIMIT), TYPES[name])
        return dict(zip(TYPES[name], outcomes, strict=True))


def job(name: str, type_: str, sandbox: SandboxAddresses) -> dict[str, Any]:
    places = {"http": sandbox.provider, "https": sandbox.provider_https, "page": f"{sandbox.site}/{type_}"}
    options = {"type": type_, "key": key_of(name), "deadline": DEADLINE, "interval": 1.0}
    data = PUZZLES[type_]()
    if (name, type_) == ("twocaptcha", "altcha"):  # the other way to ask for it
        data = {"challenge_url": f"{sandbox.site}/altcha/challenge"}
    return {**places, **options, "data": data}


def key_of(name: str) -> str:
    return f"{name}-official-sdk".ljust(32, "0")
