"""Builds the engine of one environment in one process."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_captcha_qa import __version__
from pytest_captcha_qa.config.accounts import AccountConfig
from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.conformance.place import PATIENCE, Place
from pytest_captcha_qa.engine.admission import Admission
from pytest_captcha_qa.engine.authorising import Grants
from pytest_captcha_qa.engine.events import RELEASE_CHANGED, STANDIN_IN_USE, Event
from pytest_captcha_qa.engine.obtaining import Obtainer
from pytest_captcha_qa.engine.ports import Clock, EvidenceSink, NoEvidence, SystemClock, Verifier
from pytest_captcha_qa.engine.recording import About
from pytest_captcha_qa.engine.services import Services
from pytest_captcha_qa.engine.solving import Solver
from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.errors import CaptchaQAError, ConfigError, RecordError
from pytest_captcha_qa.forms.inventory import inventory
from pytest_captcha_qa.model.form import FormSpec, VerifyVia
from pytest_captcha_qa.model.identity import RESERVED_DOMAIN, Identity
from pytest_captcha_qa.model.policy import Timeouts
from pytest_captcha_qa.model.record import EventLine, Header, Line, timestamp
from pytest_captcha_qa.model.redact import Learn, forget
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.observe.log import LineLog
from pytest_captcha_qa.ownership import ProofFetcher, ProofKey
from pytest_captcha_qa.provider.standin_provider import StandInProvider
from pytest_captcha_qa.records.excerpt import Clean
from pytest_captcha_qa.records.failures import FailureFolder, failures_folder
from pytest_captcha_qa.records.jsonl import JsonlSink, make_folder, to_json
from pytest_captcha_qa.transport import HttpAccess, HttpClient
from pytest_captcha_qa.verify.endpoint import EndpointVerifier
from pytest_captcha_qa.verify.lookup import LookupVerifier
from pytest_captcha_qa.verify.siteverify import SiteVerifier
from pytest_captcha_qa.wiring.extensions import Extension, Listeners, load_extensions
from pytest_captcha_qa.wiring.flows import Effects, PreparingDriver
from pytest_captcha_qa.wiring.observers import Records
from pytest_captcha_qa.wiring.providers import provider_of, stand_in_of
from pytest_captcha_qa.wiring.release import release_of
from pytest_captcha_qa.wiring.site import Site
from pytest_captcha_qa.wiring.standin import ScriptedVendor
from pytest_captcha_qa.wiring.stores import Loss, StorePlace, open_stores, unusable_store

RUN_HEADER = "X-Captcha-QA-Run"
# A shorter cookie is a choice such as a language; learned as a secret it would mask ordinary words.
_SECRET_COOKIE = 16


@dataclass(frozen=True)
class RunSetup:
    """What one process of a run brings along besides its environment.

    `session`: what the processes of this run have in common and no other run has, whatever a CI calls it; `boundary`:
    what tokens must not be shared beyond (state.md); `store`: path of the embedded store or address of the shared one;
    `budget`: most submits of the run, `budget_given` if a person set it; `allow_production`: hosts of the command line;
    `lease`: seconds after which the keys of a crashed process are free; `processes`: how many work on this run here;
    `has_destructive`: whether a probe was asked for that must be alone at the site.
    """

    run_id: str
    session: str
    boundary: str
    records: Path
    store: StorePlace
    budget: int | None = None
    budget_given: bool = False
    allow_production: tuple[str, ...] = ()
    proof_key: str | None = None
    shard: str | None = None
    worker: str | None = None
    lease: float = 30.0
    processes: int = 1
    has_destructive: bool = False


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
        marks = {RUN_HEADER: setup.run_id}
        self._client = HttpClient(access_of(environment), marks=marks, learn=self._learn_cookies)
        rules = environment.rules(allow_production=setup.allow_production, budgeted=setup.budget_given)
        key = ProofKey(setup.proof_key) if setup.proof_key else None
        self.grants = Grants(rules, ProofFetcher(self._client, key, rules), self._clock, self.emit)
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
            verifier_of=lambda form: self._verifier_of(form, session),
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

    def _learn_cookies(self, values: Iterable[str]) -> None:
        self._learn(value for value in values if len(value) >= _SECRET_COOKIE)

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

    def _verifier_of(self, form: FormSpec, session: HttpClient | None) -> Verifier:
        client = session or self.new_session()
        match form.verify.via:
            case VerifyVia.LOOKUP:
                return LookupVerifier(client, self.stop)
            case VerifyVia.ENDPOINT:
                return EndpointVerifier(client)
            case VerifyVia.SITEVERIFY:
                return self._site_verifier(form)
            case VerifyVia.FORM:
                raise ConfigError(f"form {form.slug!r} is verified by its own submit; there is nobody else to ask")

    def _site_verifier(self, form: FormSpec) -> SiteVerifier:
        references = self.environment.verify[form.slug]
        if references.secret is None:
            raise ConfigError(f"form {form.slug!r} is verified via siteverify but names no secret_env")
        return SiteVerifier(
            HttpClient(),  # a vendor is no target: nothing of the environment's access goes there
            secret=references.secret.text,
            source=self.environment.account.source,
            stand_in=references.url.text() if references.url is not None else None,
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


def unusable_places(setup: RunSetup, environment: EnvironmentConfig) -> list[str]:
    """Return what is wrong with the folder of the records and with the store, in sentences."""
    found = []
    try:
        make_folder(setup.records, environment.name)
    except RecordError as error:
        found.append(error.message)
    return found + unusable_store(setup.store)


def _evidence(setup: RunSetup, clean: Clean | None) -> EvidenceSink:
    if clean is None:
        return NoEvidence()
    return FailureFolder(failures_folder(setup.records), clean=clean, inventory=inventory)


def _identity(account: AccountConfig) -> str:
    """Return a name of the account that does not depend on what a configuration calls it: provider, address, key."""
    key = account.key.text() if account.key is not None else ""
    return hashlib.sha256(f"{account.provider} {account.url or ''} {key}".encode()).hexdigest()[:24]


def access_of(environment: EnvironmentConfig) -> HttpAccess:
    """Return how the environment is reached."""
    http = environment.http
    return HttpAccess(
        headers=http.headers(),
        cookies=http.cookies(),
        basic_auth=http.basic_auth(),
        client_cert_file=str(http.client_cert) if http.client_cert else None,
        ca_file=str(http.ca) if http.ca else None,
        proxy=http.proxy(),
        where=f"env.{environment.name}.http",
    )
