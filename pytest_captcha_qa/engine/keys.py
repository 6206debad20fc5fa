"""The key that an attempt works under: what it is made of, and what the store is told of the token in hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.blame import Judgement
from pytest_captcha_qa.engine.feedback import tell_provider
from pytest_captcha_qa.engine.obtaining import Held, Order
from pytest_captcha_qa.engine.ports import OpenedForm
from pytest_captcha_qa.engine.services import Services
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.engine.store import Granted, Resume
from pytest_captcha_qa.errors import (
    ConfigError,
    DeadlineExceeded,
    OwnerLost,
    ScopeDenied,
    StoreError,
    StoreUnavailable,
    TargetUnavailable,
)
from pytest_captcha_qa.model.attempt import (
    AttemptKey,
    AttemptRequest,
    Fingerprint,
    KeyMode,
    Result,
    VerifyStatus,
)
from pytest_captcha_qa.model.captcha import facts
from pytest_captcha_qa.model.form import Challenge, FormSpec
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.model.token import Solution, Token
from pytest_captcha_qa.model.url import Origin


@dataclass(frozen=True)
class SharedKey:
    """A key whose success opens a session for many; it is claimed before a page shows the challenge.

    `fingerprint`: what the store compares instead; `claimed`: its answer, if it was asked already; `session` returns
    what the store keeps after a success.
    """

    key: AttemptKey
    fingerprint: Fingerprint
    claimed: Granted | Resume | None
    session: Callable[[], str]


def key_of(services: Services, form: FormSpec, site: Origin, *, subject: str, ordinal: int = 1) -> AttemptKey:
    """Return the key of the `ordinal`-th token of a subject on a form."""
    about = services.about
    return AttemptKey(
        project=about.project, account=about.account_id, env=about.env, origin=str(site), form=form.name,
        boundary=about.boundary, subject=subject, ordinal=ordinal,
    )  # fmt: skip


def times_of(services: Services, form: FormSpec) -> KeyTimes:
    """Return how long the store keeps a key of the form in each state."""
    return KeyTimes.of(
        facts(form.type), timeouts=services.timeouts, retry_interval=services.retry_interval, lease=services.lease
    )


def order_of(
    services: Services,
    form: FormSpec,
    request: AttemptRequest,
    page: OpenedForm,
    deadline: Deadline,
    shared: SharedKey | None = None,
) -> Order:
    """Return the order of a token for the opened page, under the request's own key or the shared one."""
    own = key_of(services, form, page.page.origin, subject=request.subject, ordinal=request.ordinal)
    return Order(
        key=shared.key if shared else own,
        challenge=page.challenge,
        grants=services.grants,
        times=times_of(services, form),
        deadline=deadline,
        fresh=request.fresh,
        shared_as=shared.fingerprint if shared else None,
    )


@dataclass
class InHand:
    """The token an attempt holds, and its key; `shared` if its success opens a session for many."""

    services: Services
    form: FormSpec
    token: Token
    held: Held
    shared: SharedKey | None = None

    @property
    def task_id(self) -> str | None:
        """The provider's task behind the token."""
        return self.held.ready.solution.task_id

    def spend(self, deadline: Deadline) -> Solution:
        """Consume the token; one that has expired is made anew until the deadline.

        Raises:
            ConfigError: it was sent before, or its text was given out.
        """
        try:
            return self.token.take(within=deadline.remaining())
        except ValueError as before:
            raise ConfigError(
                f"this token of form {self.form.slug!r} cannot be submitted, {before}: ask captcha_token for another, "
                "or see it refused with expect='refuse'"
            ) from None

    @contextmanager
    def given_back_if_unsent(self) -> Iterator[None]:
        """Return the spent token to the store if the error means that not a byte of it was sent."""
        try:
            yield
        except (ScopeDenied, ConfigError, DeadlineExceeded):
            self._give_back()
            raise
        except TargetUnavailable as error:
            if not error.sent:
                self._give_back()
            raise

    def kept_during(self, deadline: Deadline) -> AbstractContextManager[None]:
        """Renew the lease of a spent token while the block runs, at most until the deadline.

        Nobody shall take a submit, or what is looked up after it, for one whose owner is gone because it takes long.
        """
        if self.held.lease is None:
            return nullcontext()
        return self.services.pulse.during(lambda: self._renewed(self.held, deadline))

    def close(self, judgement: Judgement, challenge: Challenge) -> None:
        """Tell the store what came of the token, and end the probation of its sitekey."""
        if self.held.lease is None:
            return
        lease, store, status = self.held.lease, self.services.obtainer.store, judgement.verdict.status
        with self._told_if_not_closed():
            store.done(lease, judgement.result, session=self._session_to_keep(judgement))
            store.verified(lease.key, lease.generation, status)
        if status is VerifyStatus.PASS:
            tell_provider(self.services, self.task_id, good=True)
        with self._told_if_not_closed():
            if status is VerifyStatus.PASS and self.services.about.key_mode is KeyMode.LIVE:
                admission = self.services.obtainer.solver.admission
                admission.note_verified(challenge)
                admission.note_accepted(self.form.slug)

    def _renewed(self, held: Held, deadline: Deadline) -> float | None:
        """Renew the lease if it is time; return the seconds until it is again, None if that makes no sense."""
        now, lease = self.services.clock.monotonic(), held.lease
        if lease is None or deadline.remaining() <= 0:
            return None
        if (left := held.kept_at + lease.times.renew - now) > 0:
            return left
        try:
            self.services.obtainer.store.renew(lease)
        except OwnerLost:
            return None  # whoever closes the key tells of it
        except StoreUnavailable:
            pass  # the next one may reach the store again
        held.kept_at = now
        return lease.times.renew

    def _give_back(self) -> None:
        if self.held.lease is None:
            return
        with self._told_if_not_closed():
            self.services.obtainer.store.unspend(self.held.lease)
            self.held.lease = None
            self.token.unspend()

    def _session_to_keep(self, judgement: Judgement) -> str | None:
        return self.shared.session() if self.shared and judgement.result is Result.OK else None

    @contextmanager
    def _told_if_not_closed(self) -> Iterator[None]:
        """Make an event of what the store does not take any more: it changes nothing for the site."""
        try:
            yield
        except StoreError as error:
            data = {"slug": self.form.slug, "code": error.code}
            self.services.emit(events.Event(events.KEY_NOT_CLOSED, data))
