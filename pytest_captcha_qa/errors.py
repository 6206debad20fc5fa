"""Every error the package raises, as one tree.

CaptchaQAError
├── ConfigError                 the configuration, a marker or a command line cannot work (exit 4)
│   ├── UnknownName             a name that does not exist; carries the nearest one that does
│   ├── MissingSecret           a variable or file that should hold a secret is empty
│   └── AccessNotConfigured     a login page or 401/403 stood in place of the page or the proof
├── BaselineMissing             what was to be compared with is not there, or cannot be compared (exit 16)
├── NotEnoughData               nothing that could be judged was measured (exit 11)
├── ScopeDenied                 the target is not authorised; nothing was sent (exit 15)
├── VerificationBypassed        a probe was accepted that must be refused (exit 14)
├── ProbeFailed                 a probe crashed the site, or was accepted beside a control that failed (exit 1)
├── PageError                   the page under test is broken: no widget, no form, a 5xx (exit 1)
├── TargetUnavailable           the site under test cannot be reached (exit 12)
├── SessionRefused              the site refused the login that many tests share (exit 1)
├── SessionUnclear              what became of the login that many tests share is undetermined (exit 12)
├── ProviderError               the solving service did not deliver (exit 12)
│   ├── ProviderUnavailable     no usable answer: network, 5xx, HTML, unknown text
│   │   ├── ProviderDown        it has not answered anybody for a while, so it was not asked
│   │   └── ProviderNotRunning  nobody listens where the team's own solver should run
│   ├── ProviderBusy            no free slot
│   │   └── RateLimited         too many requests: the whole account must slow down
│   ├── TaskSilent              an empty answer about a task: not ready yet, read before or unknown
│   ├── TaskUnknown             the service does not know the task id
│   ├── Unsolvable              the service gave up on the challenge
│   └── RequestRejected         the service calls the request malformed
├── KeyRejected                 the service rejects the key (exit 4)
├── BalanceExhausted            the account has no money or plan (exit 13)
├── BudgetExhausted             our own limit on submits is reached (exit 13)
├── VerifierError               the verification endpoint did not answer as documented (exit 12)
├── TransportError              one HTTP call failed; adapters translate it into one of the above
├── StoreError                  the state store refused or failed (exit 12)
│   ├── StoreUnavailable        the state store cannot be read or written (exit 12)
│   ├── OwnerLost               another owner took the key over; this one's write was refused
│   ├── KeyConflict             the same key was used for another page, sitekey or type (exit 4)
│   └── SpentElsewhere          the key's token was consumed, perhaps by a crashed attempt
├── RecordError                 a record could not be written, so the attempt counts for nothing
├── WaitedTooLong               other tests at the same site did not end before this one could begin (exit 12)
├── DeadlineExceeded            the time given to an attempt ran out (exit 12)
└── Stopped                     a drain or Ctrl-C ended the wait (exit 2)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import ClassVar


class CaptchaQAError(Exception):
    """Base of all errors of the package.

    `code` is stable and goes into records; `retryable` says whether the same call may succeed later; `exit_code` is
    the process exit code of contracts.md; `fault` is whose fault a failed attempt is. The message is our own sentence:
    what happened, where, what to do. It never holds foreign text, a key, a cookie or a token.
    """

    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1
    fault: ClassVar[str] = "undetermined"

    def __init__(self, message: str, *, task_id: str | None = None, retry_after: float | None = None) -> None:
        """Keep what a caller may need: the provider's task id and, in seconds, when to try again."""
        super().__init__(message)
        self.message = message
        self.task_id = task_id
        self.retry_after = retry_after


class ConfigError(CaptchaQAError):
    """The configuration, a marker or a command line cannot work as written."""

    code = "config"
    exit_code = 4
    fault = "config"


class UnknownName(ConfigError):
    """A name that does not exist; the message offers the nearest one that does."""

    code = "unknown_name"

    @classmethod
    def among(cls, kind: str, name: str, known: Iterable[str], *, where: str = "") -> UnknownName:
        """Return the error for `name`, which is no `kind`, naming the nearest of `known`."""
        choices = sorted(known)
        place = f" in {where}" if where else ""
        return cls(f"unknown {kind} {name!r}{place}{_suggestion(name, choices)}")


class MissingSecret(ConfigError):
    """A variable or file that should hold a secret is unset, unreadable or empty."""

    code = "missing_secret"


class AccessNotConfigured(ConfigError):
    """The environment answered with a login instead of the page or the proof."""

    code = "access_not_configured"


class BaselineMissing(CaptchaQAError):
    """The release or records to compare with are not there, or nothing in them can be compared."""

    code = "baseline_missing"
    exit_code = 16
    fault = "config"


class NotEnoughData(CaptchaQAError):
    """Nothing was measured that could be judged."""

    code = "not_enough_data"
    exit_code = 11


class ScopeDenied(CaptchaQAError):
    """The target is not authorised. Nothing was sent to it.

    `reason` is a stable word (`origin_not_listed`, `proof_missing`, `proof_expired`, ...), the message a sentence.
    """

    code = "scope_denied"
    exit_code = 15
    fault = "scope"

    def __init__(self, message: str, *, reason: str = "denied") -> None:
        """Keep the stable reason beside the sentence."""
        super().__init__(message)
        self.reason = reason


class VerificationBypassed(CaptchaQAError):
    """A form accepts what it must refuse, while it accepts good tokens."""

    code = "verification_bypassed"
    exit_code = 14
    fault = "product"


class ProbeFailed(CaptchaQAError):
    """A probe crashed the site, or something it must refuse was accepted while good tokens were refused."""

    code = "probe_failed"
    exit_code = 1
    fault = "product"


class PageError(CaptchaQAError):
    """The page under test is broken: no widget, no form around it, or an error status, which is kept as `status`."""

    code = "page_broken"
    fault = "product"

    def __init__(self, message: str, *, status: int | None = None) -> None:
        """Keep what was answered in place of the page."""
        super().__init__(message)
        self.status = status


class TargetUnavailable(CaptchaQAError):
    """The site under test could not be reached or its gateway answered for it.

    `sent` is False only where not a byte of a submit can have left, so that its token may be given back; `status` is
    what a gateway, or a limit before the site, answered.
    """

    code = "target_unavailable"
    retryable = True
    exit_code = 12
    fault = "infrastructure"

    def __init__(self, message: str, *, sent: bool = True, status: int | None = None) -> None:
        """Keep whether anything can have been sent, and what was answered."""
        super().__init__(message)
        self.sent = sent
        self.status = status


class SessionRefused(CaptchaQAError):
    """The site refused the login that the tests of a run share."""

    code = "session_refused"
    fault = "product"


class SessionUnclear(CaptchaQAError):
    """The login that the tests of a run share ended in no verdict."""

    code = "session_unclear"
    exit_code = 12


class ProviderError(CaptchaQAError):
    """The solving service did not deliver a token."""

    code = "provider"
    exit_code = 12
    fault = "provider"


class ProviderUnavailable(ProviderError):
    """The service gave no usable answer: network fault, 5xx, HTML page, unknown text.

    `sent` is False only where not a byte of the request can have left.
    """

    code = "provider_unavailable"
    retryable = True

    def __init__(self, message: str, *, retry_after: float | None = None, sent: bool = True) -> None:
        """Keep in seconds when to try again, and whether the request may have arrived."""
        super().__init__(message, retry_after=retry_after)
        self.sent = sent


class ProviderDown(ProviderUnavailable):
    """The service has answered nobody for a while, so this call was not made; one at a time looks if it is back."""

    code = "provider_down"

    def __init__(self, message: str, *, retry_after: float | None = None, sent: bool = False) -> None:
        """Keep the sentence; nothing was sent."""
        super().__init__(message, retry_after=retry_after, sent=sent)


class ProviderNotRunning(ProviderUnavailable):
    """The solver on the team's own machine is not running; to try again would not start it."""

    code = "provider_not_running"


class ProviderBusy(ProviderError):
    """The service has no free slot for this account."""

    code = "provider_busy"
    retryable = True


class RateLimited(ProviderBusy):
    """The service asks the account to slow down."""

    code = "rate_limited"


class TaskSilent(ProviderError):
    """The service said nothing about a task: it is not ready yet, was read before, or is unknown."""

    code = "task_silent"
    retryable = True


class TaskUnknown(ProviderError):
    """The service does not know the task id; the task is dropped."""

    code = "task_unknown"


class Unsolvable(ProviderError):
    """The service gave up on the challenge; once more is worth it, twice is not."""

    code = "unsolvable"
    retryable = True


class RequestRejected(ProviderError):
    """The service calls the request malformed; repeating it cannot help."""

    code = "request_rejected"


class KeyRejected(CaptchaQAError):
    """The service rejects the account's key, or has banned it."""

    code = "key_rejected"
    exit_code = 4
    fault = "config"


class BalanceExhausted(CaptchaQAError):
    """The account has no balance or no plan left."""

    code = "balance_exhausted"
    exit_code = 13
    fault = "provider"


class BudgetExhausted(CaptchaQAError):
    """Our own limit on submits (run, hour, day) is reached; nothing was sent."""

    code = "budget_exhausted"
    exit_code = 13
    fault = "config"


class VerifierError(CaptchaQAError):
    """The verification endpoint did not answer as documented."""

    code = "verifier"
    exit_code = 12
    fault = "infrastructure"


class TransportError(CaptchaQAError):
    """One HTTP call failed. `kind` is one of the names of `transport.KINDS`.

    `sent` is False only where not a byte of the request can have left.
    """

    code = "transport"
    retryable = True
    exit_code = 12
    fault = "infrastructure"

    def __init__(self, message: str, *, kind: str, sent: bool = True) -> None:
        """Keep what failed and whether anything can have been sent."""
        super().__init__(message)
        self.kind = kind
        self.sent = sent


class StoreError(CaptchaQAError):
    """The state store refused or failed."""

    code = "store"
    exit_code = 12
    fault = "infrastructure"


class StoreUnavailable(StoreError):
    """The state store cannot be read or written; `sent`: it may have done what it was asked all the same."""

    code = "store_unavailable"
    retryable = True

    def __init__(self, message: str, *, sent: bool = False) -> None:
        """Keep whether the store may have acted."""
        super().__init__(message)
        self.sent = sent


class OwnerLost(StoreError):
    """Another owner holds the key now; this owner's write was refused."""

    code = "owner_lost"


class KeyConflict(StoreError):
    """The same key was claimed for another type, sitekey, page or action."""

    code = "key_conflict"
    exit_code = 4
    fault = "config"


class SpentElsewhere(StoreError):
    """The key's token was consumed already, or perhaps, by an attempt that crashed."""

    code = "spent_elsewhere"
    fault = "undetermined"


class RecordError(CaptchaQAError):
    """A record could not be written, so the attempt counts for nothing."""

    code = "record"
    exit_code = 4
    fault = "infrastructure"


class WaitedTooLong(CaptchaQAError):
    """Tests that had to be over before this one could go to the site were not."""

    code = "waited_too_long"
    retryable = True
    exit_code = 12
    fault = "infrastructure"


class DeadlineExceeded(CaptchaQAError):
    """The time given to the attempt ran out."""

    code = "deadline"
    retryable = True
    exit_code = 12
    fault = "provider"


class Stopped(CaptchaQAError):
    """A drain, a termination signal or Ctrl-C ended the wait."""

    code = "stopped"
    exit_code = 2
    fault = "infrastructure"


def nearest_of(name: str, choices: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the choice that a name is perhaps a slip of, in whatever case; None if nothing is near."""
    spelled = {choice.lower(): choice for choice in choices}
    near = get_close_matches(name.lower(), spelled, n=1, cutoff=cutoff)
    return spelled[near[0]] if near else None


def _suggestion(name: str, choices: list[str]) -> str:
    near = nearest_of(name, choices, cutoff=0.5)
    if near is not None:
        return f"; did you mean {near!r}?"
    if choices:
        return f"; known: {', '.join(choices[:12])}"
    return "; none is defined"


def all_errors() -> Mapping[str, type[CaptchaQAError]]:
    """Return every error class by its code."""
    found: dict[str, type[CaptchaQAError]] = {}
    pending: list[type[CaptchaQAError]] = [CaptchaQAError]
    while pending:
        cls = pending.pop()
        found[cls.code] = cls
        pending.extend(cls.__subclasses__())
    return found
