"""One attempt on one form: its phases, its key, what is asked of it and what came out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pytest_captcha_qa.model.form import Challenge

KEY_VERSION = 1

# A gateway answers in the site's place with these.
GATEWAY_STATUSES = frozenset({502, 503, 504})

# Codes of records: how often a fresh token was refused, and a refusal that score_policy = "observe" makes no verdict.
REFUSED_ONCE = "refused_once"
REFUSED_TWICE = "refused_twice"
SCORE_OBSERVED = "score_observed"


class Phase(StrEnum):
    """Where an attempt stands. `TERMINAL` phases are left by nobody."""

    CREATED = "created"
    STARTED = "started"  # its `started` line is written
    AUTHORISED = "authorised"  # scope granted the page
    OPENED = "opened"  # the page is read, widget and form are known
    OBTAINED = "obtained"  # a token, or what is sent in its place, is in hand
    SUBMITTED = "submitted"  # the site has answered
    VERIFIED = "verified"  # the backend's verdict is known
    RECORDED = "recorded"  # its `attempt` line is written


TERMINAL = frozenset({Phase.RECORDED})


class Purpose(StrEnum):
    """Why the attempt was made; rates and waits come from `check` and `load` only."""

    CHECK = "check"
    PROBE = "probe"
    LOAD = "load"
    CANARY = "canary"


class Expect(StrEnum):
    """What the site is expected to do with the submit."""

    ACCEPT = "accept"
    REFUSE = "refuse"


class KeyMode(StrEnum):
    """What a token proves; never pooled."""

    LIVE = "live"
    TESTKEYS = "testkeys"
    STANDIN = "standin"


class VerifyStatus(StrEnum):
    """What the team's backend said of the token."""

    PASS = "pass"
    FAIL = "fail"
    ERROR = "error"
    SKIPPED = "skipped"


class Result(StrEnum):
    """Whether `expect` was met."""

    OK = "ok"
    FAILED = "failed"
    INDETERMINATE = "indeterminate"
    LOST = "lost"


class Fault(StrEnum):
    """Whose fault a result other than ok is."""

    PRODUCT = "product"
    PROVIDER = "provider"
    INFRASTRUCTURE = "infrastructure"
    SCOPE = "scope"
    CONFIG = "config"
    UNDETERMINED = "undetermined"


@dataclass(frozen=True, slots=True)
class AttemptKey:
    """The context of one token; `digest` is the idempotency key, a hash, so nothing personal stands in the store."""

    project: str
    account: str
    env: str
    origin: str
    form: str
    boundary: str
    subject: str
    ordinal: int = 1

    @property
    def digest(self) -> str:
        """The key of state.md: sha256 over version and all parts, each with its length."""
        parts = [
            str(KEY_VERSION),
            self.project,
            self.account,
            self.env,
            self.origin,
            self.form,
            self.boundary,
        ]
        parts += [self.subject, str(self.ordinal)]
        return _digest(*parts)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What must be equal for two callers to share a token.

    `page` is set for page-bound types only: a token of another load of the page is of no use there.
    """

    digest: str
    page: str | None = None

    @classmethod
    def of(cls, challenge: Challenge, *, page_bound: bool) -> Fingerprint:
        """Return the fingerprint of a challenge."""
        told = (challenge.type, challenge.sitekey, challenge.page.without_query, challenge.action or "")
        shown = (part for item in sorted(challenge.data.items()) for part in item)
        page = _digest(*shown)[:32] if page_bound else None
        return cls(_digest(*told)[:32], page)


@dataclass(frozen=True, slots=True)
class AttemptRequest:
    """What is asked: a form by its slug, for whom, why, within how many seconds."""

    form: str
    subject: str
    ordinal: int = 1
    purpose: Purpose = Purpose.CHECK
    timeout: float | None = None
    fresh: bool = True
    nodeid: str | None = None
    attempt: int = 1


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """What the backend said about one token; `reason` is our own sentence."""

    status: VerifyStatus
    reason: str
    http_status: int | None = None
    codes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.status is VerifyStatus.PASS

    def __repr__(self) -> str:
        return f"<Verdict {self.status}: {self.reason}>"


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """The result of one attempt; true when `expect` was met.

    `tokens_tried`: the fresh tokens the site has judged; `control`: what vouches for them, or that nothing does, in a
    sentence, where one of them was refused.
    """

    result: Result
    verdict: Verdict
    expect: Expect = Expect.ACCEPT
    fault: Fault | None = None
    error: str | None = None
    http_status: int | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    tokens_tried: int = 0
    control: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the site did what was expected."""
        return self.result is Result.OK

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        fault = f" (fault {self.fault})" if self.fault else ""
        return f"{self.result}: {self.verdict.reason}{fault}"

    def __repr__(self) -> str:
        """One sentence: a failed `assert outcome` shows this, and reports group by it."""
        return f"<Outcome {self}>"


def _digest(*parts: str) -> str:
    """Return a hash of the parts, each with its length: no part can pose as two."""
    text = "".join(f"{len(part)}:{part}," for part in parts)
    # A message's subject may hold half a surrogate pair, which JSON can write and plain UTF-8 cannot.
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
