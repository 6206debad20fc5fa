"""Builds the engine of one environment in one process."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from pytest_captcha_qa import __version__
from pytest_captcha_qa.config.accounts import AccountConfig
from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.conformance.place import PATIENCE, Place
from pytest_captcha_qa.engine.admission import Admission
from pytest_captcha_qa.engine.events import RELEASE_CHANGED, STANDIN_IN_USE, Event
from pytest_captcha_qa.engine.obtaining import Obtainer
from pytest_captcha_qa.engine.ports import Clock, EvidenceSink, NoEvidence, SystemClock
from pytest_captcha_qa.engine.recording import About
from pytest_captcha_qa.engine.services import Services
from pytest_captcha_qa.engine.solving import Solver
from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.errors import CaptchaQAError
from pytest_captcha_qa.forms.inventory import inventory
from pytest_captcha_qa.model.form import FormSpec
from pytest_captcha_qa.model.identity import RESERVED_DOMAIN, Identity
from pytest_captcha_qa.model.policy import Timeouts
from pytest_captcha_qa.model.record import EventLine, Header, Line, timestamp
from pytest_captcha_qa.model.redact import Learn, forget
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.observe.log import LineLog
from pytest_captcha_qa.provider.standin_provider import StandInProvider
from pytest_captcha_qa.records.excerpt import Clean
from pytest_captcha_qa.records.failures import FailureFolder, failures_folder
from pytest_captcha_qa.records.jsonl import JsonlSink, make_folder, to_json
from pytest_captcha_qa.transport import HttpClient
from pytest_captcha_qa.wiring.extensions import Extension, Listeners, load_extensions
from pytest_captcha_qa.wiring.flows import Effects, PreparingDriver
from pytest_captcha_qa.wiring.observers import Records
from pytest_captcha_qa.wiring.providers import provider_of, stand_in_of
from pytest_captcha_qa.wiring.reaching import client_of, grants_of
from pytest_captcha_qa.wiring.release import release_of
from pytest_captcha_qa.wiring.setup import RunSetup
from pytest_captcha_qa.wiring.site import Site
from pytest_captcha_qa.wiring.standin import ScriptedVendor
from pytest_captcha_qa.wiring.stores import Loss, open_stores
from pytest_captcha_qa.wiring.verifiers import verifier_of


class Engine:
    """What attempts on one environment need, and what must be closed at the end."""

    def __init__(
        self,
        environment: EnvironmentConfig,
        setup: RunSetup,
        *,
        stop: Stop | None = None,
        learn: Learn = forget,
        clean: Clean | None = None,
        extensions: Sequence[Extension] = (),
        listeners: Sequence[Callable[[Line], None]] = (),
    ) -> None:
        """Make the records' folder, open the store, ask the site for its release and open the records.

        `learn` is told the tokens, session cookies and passwords of the run as they come, `clean` removes them from a
        text; without it no evidence of failures and no field of an extension is kept. `extensions` come after those
        that the configuration names; `listeners` are told each line that is recorded, such as those of metrics.

        Raises:
            ConfigError, StoreUnavailable, RecordError: the run cannot work; said before any attempt.
        """
        self.environment = environment
        self.setup = setup
        self.stop = stop or Stop()
        self._learn = learn
        self._vendors: list[ScriptedVendor] = []
        self._clock: Clock = SystemClock()
        self._early: list[Event] = []
        self._records: Records | None = None
        self._closed = False
        make_folder(setup.records, environment.name)
        extensions = [*load_extensions(environment), *extensions]
        self._listeners = Listeners(extensions, self.emit, clean)
        self._client = client_of(environment, setup.run_id, learn)
        rules = environment.rules(allow_production=setup.allow_production, budgeted=setup.budget_given)
        self.grants = grants_of(self._client, rules, proof_key=setup.proof_key, clock=self._clock, emit=self.emit)
        self._provider = provider_of(environment, extensions, self.grants, learn, clean)
        loss = Loss(environment.on_store_loss, setup.processes)
        self._stores = open_stores(setup.store, loss, clock=self._clock, stop=self.stop, emit=self.emit)
        self._solver = self._new_solver()
        owner = f"{setup.worker or 'main'} {os.getpid()}"
        self.place = Place(self._stores.limits, self.stop, session=setup.session, owner=owner)
        with self.beside():
            self.release = release_of(environment, self._client.new_session(), self.grants)
        self._sink = JsonlSink(setup.records, self._header(), worker=setup.worker)
        self._records = Records(self._sink, (LineLog(to_json), *listeners))
        self._evidence = _evidence(setup, clean)
        for event in self._early:
            self.emit(event)

    def services(self, *, session: HttpClient | None = None) -> Services:
        """Return the services of an attempt; with a session all its pages share that session's cookies."""
        assert self._records is not None

        def client() -> HttpClient:
            return session or self.new_session()

        return Services(
            about=self._about(),
            page_of=lambda form: self.environment.page_of(form.slug),
            forms=self.environment.targets,
            grants=self.grants,
            driver=PreparingDriver(self.site, client),
            provider=self._provider,
            obtainer=Obtainer(self._stores.keys, self._solver, self._clock, self.stop, self.emit, self._learn),
            verifier_of=lambda form: verifier_of(self.environment, form, client, self.stop),
            records=self._records,
            clock=self._clock,
            emit=self.emit,
            identity=self.new_identity,
            field_values=self._field_values,
            retry_interval=self.environment.retry_interval,
            lease=self.setup.lease,
            timeouts=Timeouts(solve=self.environment.account.patience),
            reports=self.environment.account.report,
            evidence=self._evidence,
            effects=Effects(self.site, client),
            extensions=self._listeners,
        )

    def _field_values(self, form: FormSpec) -> dict[str, str]:
        """Return what the variables hold with which a form's fields are filled; no text with any of it is shown."""
        values = {name: named.text() for name, named in self.environment.field_values.get(form.slug, {}).items()}
        self._learn(list(values.values()))
        return values

    @property
    def site(self) -> Site:
        """The site under test, for the team's own code."""
        return Site(self.environment, self.grants, self.setup.run_id, self.release)

    def new_session(self) -> HttpClient:
        """Return an HTTP client with cookies of its own, as a new browser window has."""
        return self._client.new_session()

    def new_identity(self) -> Identity:
        """Return a synthetic person on the environment's domain."""
        identity = Identity.make(self.setup.run_id, domain=self.environment.identity_domain or RESERVED_DOMAIN)
        self._learn([identity.password])
        return identity

    def emit(self, event: Event) -> None:
        """Record an event; those before the records are open are kept until then."""
        if self._records is None:
            self._early.append(event)
            return
        ts = timestamp(self._clock.utc())
        self._records.write(EventLine(ts=ts, name=event.name, run_id=self.setup.run_id, data=event.data))

    def beside(self) -> AbstractContextManager[None]:
        """Be at the site with others, unless a probe of this run wants to be alone there; see `Place.beside`."""
        if not self.setup.has_destructive:
            return nullcontext()
        return self.place.beside(Deadline(PATIENCE, what="waiting for a probe that is alone"))

    @property
    def record_path(self) -> Path:
        """The file this process writes."""
        return self._sink.path

    def close(self, *, complete: bool) -> None:
        """Note a change of release, write the footer, give back connections and files; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._sink.attempts:
                self._note_stand_in()
            for vendor in self._vendors:
                with suppress(CaptchaQAError):  # one that is gone has ended them itself
                    vendor.close()
            if complete and self._sink.attempts:
                with suppress(CaptchaQAError), self.beside():
                    self._note_release_change()
            self._sink.close(complete)
        finally:
            self._stores.close()
            self._client.close()

    def _note_stand_in(self) -> None:
        """Say that a backend asks the stand-in, which it must not go on to do; without an answer nobody knows."""
        if not isinstance(self._provider, StandInProvider):
            return
        with suppress(CaptchaQAError):
            if (use := self._provider.stand_in.use()).get("calls"):
                self.emit(Event(STANDIN_IN_USE, {"calls": use["calls"], "last_call_ago": use.get("last_call_ago")}))

    def vendor(self, at: Url | None = None) -> ScriptedVendor:
        """Return the environment's stand-in to be scripted, in a session that ends with this; `at`: see `stand_in_of`.

        Raises:
            ConfigError: there is none.
            ScopeDenied: it is not on this machine and speaks plain http.
        """
        own = self._provider.stand_in if isinstance(self._provider, StandInProvider) else None
        self._vendors.append(ScriptedVendor(own or stand_in_of(self.environment, at), self.grants, self._learn))
        return self._vendors[-1]

    def _note_release_change(self) -> None:
        """Ask the site once more which release it is; without an answer nothing is known to have changed."""
        now = release_of(self.environment, self._client.new_session(), self.grants)
        if self.release is not None and now is not None and now != self.release:
            self.emit(Event(RELEASE_CHANGED, {"from": self.release, "to": now}))

    def _new_solver(self) -> Solver:
        account, setup = self.environment.account, self.setup
        admission = Admission(
            account=_identity(account),
            name=account.name,
            run_id=setup.session,
            limits=self._stores.limits,
            rules=account.limits(run_budget=setup.budget),
            clock=self._clock,
            stop=self.stop,
            scale=account.time_scale,
        )
        return Solver(self._provider, self._stores.keys, admission, self._clock, self.stop, self.emit)

    def _about(self) -> About:
        account, setup = self.environment.account, self.setup
        return About(
            env=self.environment.name,
            run_id=setup.run_id,
            account=account.name,
            account_id=_identity(account),
            provider=account.provider,
            key_mode=account.key_mode,
            boundary=setup.boundary,
            worker_version=__version__,
            release=self.release,
            worker=setup.worker,
        )

    def _header(self) -> Header:
        return Header(
            ts=timestamp(self._clock.utc()),
            tool=f"pytest-captcha-qa {__version__}",
            run_id=self.setup.run_id,
            env=self.environment.name,
            release=self.release,
            time_scale=self.environment.account.time_scale,
            shard=self.setup.shard,
        )


def _evidence(setup: RunSetup, clean: Clean | None) -> EvidenceSink:
    if clean is None:
        return NoEvidence()
    return FailureFolder(failures_folder(setup.records), clean=clean, inventory=inventory)


def _identity(account: AccountConfig) -> str:
    """Return a name of the account that does not depend on what a configuration calls it: provider, address, key."""
    key = account.key.text() if account.key is not None else ""
    return hashlib.sha256(f"{account.provider} {account.url or ''} {key}".encode()).hexdigest()[:24]
