"""One login for a whole run: who asks first makes it, all others get its session from the store, or its error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from uuid import uuid4

from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.attempt import Attempt
from pytest_captcha_qa.engine.keys import SharedKey, key_of, times_of
from pytest_captcha_qa.engine.obtaining import error_of
from pytest_captcha_qa.engine.services import Services
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.engine.store import Busy, Claim, Conflict, Done, Failed, Granted, Indeterminate, Resume
from pytest_captcha_qa.errors import (
    CaptchaQAError,
    ConfigError,
    OwnerLost,
    ProviderError,
    ScopeDenied,
    SessionRefused,
    SessionUnclear,
    SpentElsewhere,
    Stopped,
    StoreUnavailable,
    TargetUnavailable,
    TaskUnknown,
)
from pytest_captcha_qa.model.attempt import AttemptRequest, Fault, Fingerprint, Outcome
from pytest_captcha_qa.model.captcha import Binding, facts
from pytest_captcha_qa.model.policy import KeyTimes, total_budget

# Seconds per try for which the store remembers a shared login; with three tries and the tombstone's factor of two a
# session outlives the longest run, and what is left of it is gone within a day.
_REMEMBERED = 3600.0
_PAUSE = 1.0
# Seconds in which who made the login says why it left no session, or opens the form again with another token.
_PATIENCE = 60.0
_ERRORS: Mapping[Fault, type[CaptchaQAError]] = {
    Fault.PRODUCT: SessionRefused,
    Fault.PROVIDER: ProviderError,
    Fault.INFRASTRUCTURE: TargetUnavailable,
    Fault.SCOPE: ScopeDenied,
    Fault.CONFIG: ConfigError,
    Fault.UNDETERMINED: SessionUnclear,
}


class SharedLogin:
    """The login on one form for one subject, as one of the processes of a run sees it."""

    def __init__(
        self,
        request: AttemptRequest,
        services: Services,
        *,
        fields: Mapping[str, str],
        session: Callable[[], str],
    ) -> None:
        """Take what an attempt on the form needs; `session` returns what its success leaves, as a text.

        Raises:
            ConfigError: there is no such form, or nothing is submitted in its verification, so nobody is logged in.
        """
        self._request = replace(request, fresh=False)
        self._services = replace(services, retry_interval=_REMEMBERED)
        self._limits = services.obtainer.solver.admission.limits
        self._fields = fields
        self._form = services.form(request.form)
        if not self._form.verify.via.submits_form:
            raise ConfigError(
                f"form {request.form!r} is verified via {self._form.verify.via!s}, which does not submit it, so it "
                "opens no session; a login form needs verify via form or lookup"
            )
        site = services.page_of(self._form).origin
        key = key_of(services, self._form, site, subject=request.subject)
        self._fingerprint = Fingerprint(key.digest)
        self._shared = SharedKey(key, self._fingerprint, None, session)
        self._patience = _PATIENCE

    def session(self) -> str:
        """Return the session: this caller's own if it is the first, else that of whoever was.

        Raises:
            CaptchaQAError: why the login failed, the same for every caller; it is not tried again.
        """
        store, stop, owner = self._services.obtainer.store, self._services.obtainer.stop, uuid4().hex
        seconds = total_budget(facts(self._form.type), self._services.timeouts) + self._services.lease
        deadline = Deadline(seconds, what=self._what, now=self._services.clock.monotonic)
        while True:
            self._raise_known_failure()
            claim = store.claim(self._shared.key.digest, self._fingerprint, owner, times=self._times())
            found = self._made(claim) if isinstance(claim, Granted | Resume) else _session_in(claim)
            if found is not None:
                return found
            stop.wait(deadline.cap(self._pause(claim)))

    def _made(self, claimed: Granted | Resume) -> str | None:
        """Return the session of this caller's own attempt; None to ask the store again."""
        if isinstance(claimed, Resume) and facts(self._form.type).binding is Binding.PAGE:
            self._drop(claimed)
            return None
        try:
            with self._failure_told():
                with Attempt(self._request, self._services) as attempt:
                    self._opened(attempt, claimed)
                    attempt.obtain(replace(self._shared, claimed=claimed))
                    attempt.submit(self._fields)
                self._raise_unless_accepted(attempt.outcome)
        except (OwnerLost, SpentElsewhere):
            return None  # this process was held up for so long that another took over
        return self._shared.session()

    def _opened(self, attempt: Attempt, claimed: Granted | Resume) -> None:
        """Open the page of the right form; if that fails the key is closed, which a failing solve does by itself."""
        store = self._services.obtainer.store
        try:
            attempt.start()
            attempt.open()
            attempt.check_fields(self._fields)
        except CaptchaQAError as error:
            if isinstance(claimed, Granted) and not isinstance(error, Stopped):
                store.failed(claimed.lease, error.code)
            raise
        store.renew(claimed.lease)

    def _drop(self, claimed: Resume) -> None:
        """Give up the task of a crashed process: its token would belong to a page that nobody has open."""
        data = {"slug": self._form.slug, "key": claimed.lease.key[:8], "task_id": claimed.task_id}
        self._services.emit(events.Event(events.TOKEN_LOST, data))
        self._services.obtainer.store.failed(claimed.lease, TaskUnknown.code, not_before=0.0)

    def _pause(self, claim: Claim) -> float:
        """Return the seconds until the store is asked again, or raise what ends the waiting."""
        if isinstance(claim, Indeterminate | Conflict):
            raise self._told(self._services.obtainer.refusal(self._form.slug, claim))
        if isinstance(claim, Done | Failed):
            self._patience -= _PAUSE
        if self._patience <= 0:
            raise self._told(SessionUnclear(f"{self._what} ended, and the process that made it vanished"))
        # In any other state its owner is about to submit the token, or to say why there is no session.
        return claim.retry_after if isinstance(claim, Busy) else _PAUSE

    @property
    def _what(self) -> str:
        return f"the login on form {self._form.slug!r} that the tests of this run share"

    # A failure is told to all, since none of them is to try again.

    def _raise_unless_accepted(self, outcome: Outcome) -> None:
        if not outcome:
            cls = _ERRORS[outcome.fault or Fault.UNDETERMINED]
            raise cls(f"{self._what} failed: {outcome.verdict.reason}")

    @contextmanager
    def _failure_told(self) -> Iterator[None]:
        try:
            yield
        except (OwnerLost, SpentElsewhere, StoreUnavailable, Stopped):
            raise
        except CaptchaQAError as error:
            raise self._told(error) from None

    def _told(self, error: CaptchaQAError) -> CaptchaQAError:
        told = json.dumps({"code": error.code, "message": error.message})
        self._limits.raise_flag(self._flag, told, seconds=self._times().tombstone)
        return error

    def _raise_known_failure(self) -> None:
        told = self._limits.flag(self._flag)
        if told is not None:
            known = json.loads(told)
            raise error_of(known["code"], known["message"])

    @property
    def _flag(self) -> str:
        return f"session:{self._shared.key.digest}"

    def _times(self) -> KeyTimes:
        return times_of(self._services, self._form)


def _session_in(claim: Claim) -> str | None:
    return claim.session if isinstance(claim, Done) else None
