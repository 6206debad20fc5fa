"""One environment, merged and ready for use: what wiring builds an engine from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_captcha_qa.config.access import HttpConfig
from pytest_captcha_qa.config.accounts import AccountConfig
from pytest_captcha_qa.config.environments import lies_in, single_origin
from pytest_captcha_qa.config.variables import Reference
from pytest_captcha_qa.errors import ConfigError, MissingSecret, UnknownName
from pytest_captcha_qa.model.captcha import official_secrets
from pytest_captcha_qa.model.form import EnvKind, FormSpec
from pytest_captcha_qa.model.policy import OnStoreLoss
from pytest_captcha_qa.model.store import StoreAddress, StoreAddressRefused
from pytest_captcha_qa.model.url import Url, UrlRefused
from pytest_captcha_qa.model.waiver import Waiver
from pytest_captcha_qa.scope import OriginPattern, ScopeRules, TokenSource

LARGEST_FILE = 1024 * 1024
"""Most bytes of a file that a form sends."""


@dataclass(frozen=True, slots=True)
class ReleaseFrom:
    """Where the site says which release it is: a path, and a dotted JSON key or a header of its answer."""

    path: str
    json: str | None
    header: str | None


@dataclass(frozen=True, slots=True)
class VerifyReferences:
    """What verification by siteverify reads from outside the file."""

    secret: Reference | None = None
    url: Reference | None = None

    def stand_in(self) -> Url | None:
        """Return the address of what plays the vendor, None if it is the vendor.

        Raises:
            MissingSecret: the variable or file that should hold it is empty.
            ConfigError: what stands there is no address.
        """
        return _address(self.url) if self.url is not None else None


@dataclass(frozen=True, slots=True)
class EnvironmentConfig:
    """One environment with its forms and its account.

    `folder`: that of the configuration file; `given_release`: what command line or variable said; `base`: None if a
    sandbox will be started for it; `extensions`: modules of the team.
    """

    name: str
    kind: EnvKind
    origins: tuple[OriginPattern, ...]
    base: Reference | Url | None
    account: AccountConfig
    forms: Mapping[str, FormSpec]
    verify: Mapping[str, VerifyReferences]
    store: Reference | None
    given_release: str | None
    release_ref: Reference | None
    release_from: ReleaseFrom | None
    retry_interval: float
    on_store_loss: OnStoreLoss
    http: HttpConfig
    identity_domain: str | None
    field_values: Mapping[str, Mapping[str, Reference]] = field(default_factory=dict)
    waivers: tuple[Waiver, ...] = ()
    folder: Path = Path()
    extensions: tuple[str, ...] = ()

    @property
    def base_url(self) -> Url:
        """The site's address; it lies in the origins.

        Raises:
            MissingSecret: the variable or file that should hold it is empty.
            ConfigError: it is no address, lies elsewhere, or is not known before the sandbox runs.
        """
        if isinstance(self.base, Reference):
            return self._checked(self.base)
        if self.base is not None:
            return self.base
        origin = single_origin(self.origins)
        if origin is None:
            raise ConfigError(f"the address of environment {self.name!r} is known once its sandbox runs")
        return Url(origin, "/", "")

    @property
    def release(self) -> str | None:
        """The release under test as far as it is known without asking the site."""
        if self.given_release is not None or self.release_ref is None:
            return self.given_release
        try:
            return self.release_ref.text()
        except MissingSecret:
            return None

    def form(self, slug: str) -> FormSpec:
        """Return one form.

        Raises:
            UnknownName: the environment has no such form.
        """
        if slug not in self.forms:
            raise UnknownName.among("form", slug, self.forms, where=f"environment {self.name!r}")
        return self.forms[slug]

    @property
    def targets(self) -> Mapping[str, FormSpec]:
        """Every form a test may name: each form, then `slug:variant` for its variants."""
        found: dict[str, FormSpec] = {}
        for form in self.forms.values():
            found |= {one.name: one for one in (form, *form.variant_forms())}
        return found

    @property
    def store_address(self) -> StoreAddress | None:
        """Where the shared store is, None without one.

        Raises:
            ConfigError: the variable or file is missing, or holds no address; the message does not repeat it.
        """
        if self.store is None:
            return None
        try:
            return StoreAddress.parse(self.store.text())
        except StoreAddressRefused as refused:
            raise ConfigError(f"{self.store.key}: {self.store.named} is unusable: {refused}") from None

    def page_of(self, slug: str) -> Url:
        """Return the address of a form's page: its path below the base URL."""
        base = self.base_url
        return Url.parse(f"{base.origin}{base.path.rstrip('/')}{self.form(slug).path}")

    def references(self, forms: Iterable[str] | None = None) -> Iterator[Reference]:
        """Yield all that a run on these forms, by default all, reads from outside the file and cannot do without."""
        account = self.account
        named: list[object] = [self.base, account.key, account.address, account.solver_proxy, self.store]
        named += self.http.references()
        for slug in self.forms if forms is None else forms:
            named += (self.verify[slug].secret, self.verify[slug].url, *self.field_values.get(slug, {}).values())
        yield from (reference for reference in named if isinstance(reference, Reference))

    def missing(self, forms: Iterable[str] | None = None) -> list[str]:
        """Return in sentences all that keeps a run on these forms, by default all, from starting.

        Variables and files are read and none of their values is repeated; nothing is sent.
        """
        slugs = list(self.forms if forms is None else forms)
        unusable_files = [said for slug in slugs for said in _file_faults(self.forms[slug])]
        absent: dict[str, str] = {}
        for reference in self.references(slugs):
            if (fault := _fault(reference.text)) is not None:
                absent.setdefault(reference.named, fault.message)
        faults = map(_fault, self._readers(slugs))
        unusable = [fault.message for fault in faults if fault is not None and not isinstance(fault, MissingSecret)]
        files = [f"env.{self.name}.http.{key}: {path} is no file" for key, path in self.http.absent_files()]
        found = [*self._unworkable(), *absent.values(), *unusable, *files, *unusable_files, *self._test_secrets(slugs)]
        return list(dict.fromkeys(found))

    def _test_secrets(self, slugs: Iterable[str]) -> Iterator[str]:
        """Yield which site secrets of production are official test secrets, with which everybody passes."""
        secrets = {slug: self.verify[slug].secret for slug in slugs if self.kind is EnvKind.PRODUCTION}
        for slug, reference in secrets.items():
            if reference is not None and _fault(reference.text) is None and reference.text() in official_secrets():
                yield f"forms.{slug}.verify: {reference.named} holds an official test secret, which lets everybody pass"

    def _readers(self, slugs: Iterable[str]) -> Iterator[Callable[[], object]]:
        """Yield what reads a value that must have a certain shape."""
        yield lambda: self.account.url
        yield lambda: self.account.proxy
        yield lambda: self.store_address
        if self.origins:
            yield lambda: self.base_url
        yield from self.http.readers()
        for slug in slugs:
            yield self.verify[slug].stand_in

    def _unworkable(self) -> Iterator[str]:
        """Yield what the file may say and a run cannot work with: above all what this version cannot do yet."""
        account = self.account
        if account.address is None and account.source is TokenSource.SANDBOX and self.origins:
            yield (
                f"accounts.{account.name}.url_env is missing: only `demo` starts a sandbox itself; "
                "name the variable that holds the provider address of yours"
            )

    def rules(self, *, allow_production: Iterable[str] = (), budgeted: bool = False) -> ScopeRules:
        """Return what scope is told about the environment; both arguments come from the command line."""
        return ScopeRules(
            env=self.name,
            kind=self.kind,
            origins=self.origins,
            source=self.account.source,
            allow_production=frozenset(allow_production),
            budgeted=budgeted,
            private_ca=self.http.ca is not None,
        )

    def served_at(self, *, site: str, provider: str, time_scale: float | None = None) -> EnvironmentConfig:
        """Return the same environment at the addresses of a sandbox that was started for it."""
        url = Url.parse(site)
        scale = self.account.time_scale if time_scale is None else time_scale
        account = replace(self.account, address=Url.parse(provider), time_scale=scale)
        return replace(self, origins=(OriginPattern(url.origin),), base=url, account=account)

    def _checked(self, reference: Reference) -> Url:
        url = _address(reference)
        if not lies_in(url, self.origins):
            known = ", ".join(map(str, self.origins))
            raise ConfigError(
                f"{reference.key}: {reference.named} says {url.origin}, which is not among origins ({known})"
            )
        if url.query:
            raise ConfigError(f"{reference.key}: {reference.named} holds an address with a query; leave it out")
        return url


def _address(reference: Reference) -> Url:
    try:
        return Url.parse(reference.text())
    except UrlRefused as refused:
        raise ConfigError(f"{reference.key}: {reference.named} holds no usable address: {refused}") from None


def _file_faults(form: FormSpec) -> Iterator[str]:
    """Yield what keeps the form's files from being sent."""
    for name, path in form.files.items():
        file = Path(path)
        if not file.is_file():
            yield f"forms.{form.slug}.fields.{name}: {path} is no file"
        elif file.stat().st_size > LARGEST_FILE:
            most = f"{LARGEST_FILE // 1024} KiB, the most that is sent"
            yield f"forms.{form.slug}.fields.{name}: {path} has more than {most}"


def _fault(read: Callable[[], object]) -> ConfigError | None:
    try:
        read()
    except ConfigError as error:
        return error
    return None
