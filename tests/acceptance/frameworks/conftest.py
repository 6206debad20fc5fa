"""What the tests on real frameworks share: shops as child processes, and the built-in suites run against them."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from platformdirs import user_cache_path

from pytest_captcha_qa.sandbox import keys
from pytest_captcha_qa.sandbox.server import SandboxAddresses

HERE = Path(__file__).parent
QA_PASSWORD = "correct horse battery staple"
SITE_AUTH = "staging:not for everybody"
SETTINGS = """\
accounts.local = {{ provider = "sandbox", url_env = "SANDBOX_PROVIDER_URL", time_scale = 0.02 }}
[env.staging]
kind = "staging"
origins = ["{site}"]
account = "local"
{access}
"""


@pytest.fixture(scope="module")
def settings_of_the_shop(sandbox: SandboxAddresses) -> dict[str, str]:
    """Return the variables a shop is deployed with: keys of its own, and the vendor's stand-in as its vendor."""
    return {
        "VENDOR_URL": sandbox.vendor,
        "RECAPTCHA_SITEKEY": keys.RECAPTCHA_V2.sitekey,
        "RECAPTCHA_SECRET": keys.RECAPTCHA_V2.secret,
        "TURNSTILE_SITEKEY": keys.TURNSTILE.sitekey,
        "TURNSTILE_SECRET": keys.TURNSTILE.secret,
        "TURNSTILE_SITEKEY_2": keys.BROKEN.sitekey,
        "TURNSTILE_SECRET_2": keys.BROKEN.secret,
        "QA_PASSWORD": QA_PASSWORD,
    }


@contextmanager
def serving(*command: str, settings: Mapping[str, str]) -> Iterator[str]:
    """Start a shop, which prints its port, and give its origin."""
    env = {"PATH": os.environ["PATH"], **settings}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as shop:
        try:
            assert shop.stdout is not None
            port = shop.stdout.readline().strip()
            assert port, f"{command[-1]} has ended before it served"
            yield f"http://127.0.0.1:{port}"
        finally:
            shop.terminate()


@pytest.fixture(scope="module")
def flask_shop(settings_of_the_shop: dict[str, str]) -> Iterator[str]:
    with serving(sys.executable, str(HERE / "flask_app.py"), settings=settings_of_the_shop) as origin:
        yield origin


@dataclass(frozen=True)
class ClosedShop:
    """A shop behind basic authentication, what it lets in, and the folder it serves proofs from."""

    origin: str
    auth: str
    proofs: Path


@pytest.fixture(scope="module")
def closed_flask_shop(
    settings_of_the_shop: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClosedShop]:
    proofs = tmp_path_factory.mktemp("proofs")
    settings = settings_of_the_shop | {"SITE_AUTH": SITE_AUTH, "PROOFS": str(proofs)}
    with serving(sys.executable, str(HERE / "flask_app.py"), settings=settings) as origin:
        yield ClosedShop(origin, SITE_AUTH, proofs)


@pytest.fixture(scope="module")
def fastapi_shop(settings_of_the_shop: dict[str, str]) -> Iterator[str]:
    with serving(sys.executable, str(HERE / "fastapi_app.py"), settings=settings_of_the_shop) as origin:
        yield origin


@pytest.fixture(scope="module")
def express_shop(settings_of_the_shop: dict[str, str], node_modules: Path) -> Iterator[str]:
    settings = settings_of_the_shop | {"NODE_PATH": str(node_modules), "NODE_ENV": "production"}
    with serving("node", str(HERE / "express_app" / "app.js"), settings=settings) as origin:
        yield origin


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """Return the installed packages of the shop on Express, kept beside the virtual environment while they fit."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        unavailable("node and npm are not installed")
    version = subprocess.run(
        ["node", "--version"], capture_output=True, text=True, check=True, timeout=20
    ).stdout.strip()
    if int(version.removeprefix("v").partition(".")[0]) < 18:
        unavailable(f"Express 5 needs node 18, this is {version}")
    wanted = HERE / "express_app" / "package.json"
    base = Path(sys.prefix) if sys.prefix != sys.base_prefix else user_cache_path("captcha-qa")
    folder = base / "node" / hashlib.sha256(wanted.read_bytes()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:  # several workers of pytest-xdist may want it at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "installed").exists():
            shutil.copy(wanted, folder)
            install(folder)
            (folder / "installed").touch()
    return folder / "node_modules"


def install(folder: Path) -> None:
    options = ("--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--omit=dev", "--loglevel=error")
    done = subprocess.run(["npm", "install", *options], cwd=folder, capture_output=True, text=True, timeout=200)
    if done.returncode:
        unavailable(f"npm install failed: {done.stderr[-500:]}")


def unavailable(why: str) -> None:
    """Skip on a laptop; a CI has what its tests need."""
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(f"the shop on Express cannot run: {why}")
    pytest.skip(f"the shop on Express cannot run: {why}")


@dataclass(frozen=True)
class Checked:
    """A run of pytest against a shop, and what the shop has done meanwhile: what its lists have more than before."""

    run: Any
    done: Mapping[str, list[Any]]

    def is_sound(self, *forms: str) -> bool:
        """Return whether all forms did in all six attempts of their suite what was expected."""
        assert self.run.code == 0, self.run.output
        assert {slug: form["verdict"] for slug, form in self.run.verdict["forms"].items()} == dict.fromkeys(forms, "ok")
        found = [(a["slug"], a["expect"], a["outcome"], a["verify_status"]) for a in self.run.attempts]
        for slug in forms:
            assert found.count((slug, "accept", "ok", "pass")) == 2
            assert found.count((slug, "refuse", "ok", "fail")) == 4
        assert len(found) == 6 * len(forms)
        return True


@pytest.fixture
def check(run_pytest: Callable[..., Any], ask: Callable[..., Any], sandbox: SandboxAddresses) -> Callable[..., Checked]:
    """`check(shop, forms, *arguments)` runs the built-in suites, or what `arguments` say, on these forms of a shop."""

    def check(
        shop: str,
        forms: str,
        *arguments: str,
        access: str = "",
        files: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Checked:
        before = ask(f"{shop}/audit")
        run = run_pytest(
            "--captcha-env=staging",
            *(arguments or ("--pyargs", "pytest_captcha_qa.suites")),
            files={"captcha-qa.toml": SETTINGS.format(site=shop, access=access) + forms, **(files or {})},
            env={"SANDBOX_PROVIDER_URL": sandbox.provider, "QA_PASSWORD": QA_PASSWORD, **(env or {})},
        )
        after = ask(f"{shop}/audit")
        return Checked(run, {name: list(items)[len(before[name]) :] for name, items in after.items()})

    return check
