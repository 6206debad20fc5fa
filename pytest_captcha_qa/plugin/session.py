"""One run of captcha tests in one process: its settings, and an engine that is built when the first test needs it."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import threading
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_captcha_qa.config import ci, sources
from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.config.settings import Settings
from pytest_captcha_qa.errors import CaptchaQAError, ConfigError
from pytest_captcha_qa.model.redact import Scrubber
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.ownership import KEY_VARIABLE
from pytest_captcha_qa.plugin import options, probes, rendezvous, reruns
from pytest_captcha_qa.plugin.forwarding import hook_extensions
from pytest_captcha_qa.plugin.markers import is_captcha_test
from pytest_captcha_qa.plugin.memory import Memory
from pytest_captcha_qa.state.sqlite import default_path
from pytest_captcha_qa.wiring.engine import Engine
from pytest_captcha_qa.wiring.extensions import unusable_extensions
from pytest_captcha_qa.wiring.functions import unusable_functions
from pytest_captcha_qa.wiring.probing import unusable_waivers
from pytest_captcha_qa.wiring.providers import unsolvable_forms
from pytest_captcha_qa.wiring.setup import RunSetup, unusable_places
from pytest_captcha_qa.wiring.stores import StorePlace

RUN: pytest.StashKey[CaptchaRun] = pytest.StashKey()
DEMO_TIME_SCALE = 0.01


class CaptchaRun:
    """What the plugin knows of a run once an environment is chosen.

    Nothing is opened or asked before `engine` is used, which the first captcha test does. `shared` remembers the
    attempts that no single test has made.
    """

    def __init__(self, config: pytest.Config) -> None:
        """Read the settings.

        Raises:
            ConfigError: they cannot work; the message names every problem.
        """
        self.config = config
        self.worker = _worker_input(config)
        self.settings = _settings(config)
        self.environment: EnvironmentConfig = self.settings.environment()
        given = self.worker.get("run_id") or self.settings.run.run_id
        self.identity = ci.identify(os.environ, root=config.rootpath, env=self.environment.name, given=given)
        self.session = self.worker.get("session") or secrets.token_hex(8)
        self.captcha_tests = 0
        self.most_executions = 0
        self.shared = Memory()
        self.scrubber = Scrubber()
        with suppress(ConfigError):  # what is missing is told when it is needed
            self.scrubber.learn(_known_secrets(self.settings, self.environment))
        self._engine: Engine | None = None
        self._broken: CaptchaQAError | None = None
        self._lock = threading.RLock()
        self._demo: rendezvous.Demo | None = None
        self._folder: Path | None = None

    # What one process decides for all of them (architecture, decision 7).

    @property
    def decides(self) -> bool:
        """Whether this process answers for the run: the only one, or the one that started the workers."""
        return not self.worker

    @property
    def shared_folder(self) -> Path:
        """The folder that the processes of this run share; made by the one that decides."""
        if self._folder is None:
            given = self.worker.get("folder")
            self._folder = Path(given) if given else Path(tempfile.mkdtemp(prefix="captcha-qa-"))
        return self._folder

    @property
    def demo(self) -> rendezvous.Demo | None:
        """The sandbox of the environment `demo`, None for another environment."""
        if self._demo is None and self.environment.base is None and not self.environment.origins:
            self._demo = rendezvous.Demo(self.shared_folder, time_scale=DEMO_TIME_SCALE)
        return self._demo

    @property
    def stand_in(self) -> Url | None:
        """Where the demo's stand-in is, None for another environment: its account says it."""
        return Url.parse(self.demo.addresses(may_start=False).vendor) if self.demo is not None else None

    def for_workers(self, count: int) -> dict[str, str]:
        """Return what each of so many xdist workers is told."""
        copies = count if self.config.getoption("dist", "no") == "each" else 1
        names = {"run_id": self.identity.run_id, "session": self.session, "folder": str(self.shared_folder)}
        return names | {"copies": str(copies), "processes": str(count)}

    def note_selected(self, items: Sequence[pytest.Item]) -> None:
        """Take into account which tests will run: how many need a captcha, and how often they may at most."""
        selected = [item for item in items if is_captcha_test(item)]
        self.captcha_tests = len(selected)
        self.most_executions = sum(map(reruns.most_tries, selected)) * int(self.worker.get("copies", 1))

    # The engine.

    @property
    def budget(self) -> int:
        """The most submits of the run over all its processes, each of which has collected all its tests.

        A test that may run again, or on each worker, is given as many submits each time.
        """
        return self.settings.run.budget or 2 * max(self.most_executions, 1)

    def check(self, forms: Iterable[str]) -> None:
        """Look for everything that would keep these forms from being tested; nothing is sent.

        Raises:
            ConfigError: all of it; in a worker each of its captcha tests will say so.
        """
        problems = self.environment.missing(forms)
        with suppress(ConfigError):  # a store's address that cannot be read is among what is missing
            problems += unusable_places(self._setup(self.environment), self.environment)
        problems += [*unusable_functions(self.environment, forms), *unsolvable_forms(self.environment, forms)]
        problems += unusable_extensions(self.environment, hook_extensions(self.config))
        problems += unusable_waivers(self.environment.waivers)
        if problems:
            error = ConfigError("\n".join(problems))
            self._broken = None if self.decides else error
            raise error

    @property
    def engine(self) -> Engine:
        """The engine of this process, built at its first use.

        Raises:
            CaptchaQAError: why the run cannot work; the same for every test.
        """
        with self._lock:
            if self._broken is not None:
                raise self._broken.with_traceback(None)
            if self._engine is None:
                try:
                    self._engine = self._build()
                except CaptchaQAError as error:
                    self._broken = error
                    raise
            return self._engine

    @property
    def started(self) -> bool:
        """Whether anything was opened."""
        return self._engine is not None

    def finish(self, *, complete: bool) -> None:
        """Close what was opened in this process."""
        with self._lock:
            if self._engine is not None:
                self._engine.close(complete=complete)

    def clean_up(self) -> None:
        """End the sandbox and remove the shared folder, in the process that made them."""
        if not self.decides:
            return
        if self._demo is not None:
            self._demo.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _build(self) -> Engine:
        environment = self.environment
        if self.demo is not None:
            at = self.demo.addresses(may_start=self.decides)
            environment = environment.served_at(site=at.site, provider=at.provider, time_scale=at.time_scale)
        self.environment = environment
        known = self.scrubber
        hooks = hook_extensions(self.config)
        return Engine(environment, self._setup(environment), learn=known.learn, clean=known.clean, extensions=hooks)

    def _setup(self, environment: EnvironmentConfig) -> RunSetup:
        run = self.settings.run
        return RunSetup(
            run_id=self.identity.run_id,
            session=self.session,
            boundary=self.identity.boundary,
            records=run.records,
            store=self._store_place(environment),
            budget=self.budget,
            budget_given=run.budget is not None,
            allow_production=run.allow_production,
            proof_key=self.settings.variables.get(KEY_VARIABLE),
            shard=self.identity.shard,
            worker=self.worker.get("id"),
            processes=int(self.worker.get("processes", 1)),
            has_destructive=probes.has_destructive(self.config),
        )

    def _store_place(self, environment: EnvironmentConfig) -> StorePlace:
        """Return where the store is; the demo's dies with its sandbox, whose tokens nobody else takes."""
        if self.demo is not None:
            return self.shared_folder / "state.sqlite"
        return environment.store_address or default_path("state")


def run_of(config: pytest.Config) -> CaptchaRun | None:
    """Return the run of this session, None without an environment."""
    return config.stash.get(RUN, None)


def _settings(config: pytest.Config) -> Settings:
    return sources.load(
        config.invocation_params.dir,
        config.rootpath,
        options=options.given(config),
        ini=options.ini(config),
        environ=os.environ,
    )


def _worker_input(config: pytest.Config) -> Mapping[str, str]:
    given = getattr(config, "workerinput", None)
    if given is None:
        return {}
    return {"id": str(given["workerid"]), **given.get(rendezvous.WORKER_INPUT, {})}


def _known_secrets(settings: Settings, environment: EnvironmentConfig) -> list[str]:
    """Return the secrets that the configuration names, in the forms in which they are sent.

    Raises:
        ConfigError: one of them is missing or badly written.
    """
    http, account = environment.http, environment.account
    found = [account.key.text()] if account.key is not None else []
    found += account.proxy.secrets if account.proxy is not None else ()
    found += [settings.variables.get(KEY_VARIABLE) or "", *http.headers().values(), *http.cookies().values()]
    if login := http.basic_auth():
        found += [login[1], b64encode(":".join(login).encode()).decode()]
    if (store := environment.store_address) is not None:
        found += store.secrets
    return [secret for secret in found if secret]
