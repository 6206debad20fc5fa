"""What the engine tells listeners, in the past tense; recorded as `event` lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

EventValue = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened besides the attempts: a degradation, a renewal, a window of state.md.

    `data` holds names, numbers and our own sentences only; it is written to records as it is.
    """

    name: str
    data: Mapping[str, EventValue] = field(default_factory=dict)


Emit = Callable[[Event], None]


def silent(event: Event) -> None:
    """Take an event and do nothing."""


# Names that other parts count on.
SUBMIT_UNKNOWN = "submit_unknown"  # W1: perhaps paid, its id is unknown
TOKEN_LOST = "token_lost"  # W2: a read-once token was read but not stored
SUBMIT_MAYBE_POSTED = "submit_maybe_posted"  # W3: a consumer crashed after the spend
STORE_DEGRADED = "store_degraded"  # the shared store is lost; what follows alone is W4
STORE_BACK = "store_back"  # it can be reached again
SUBMITTED_ALONE = "submitted_alone"  # W4: another worker may submit for the same key, since neither can ask
ACCOUNT_HELD = "account_held"  # the service asked for a long pause; `asked` for more than it gets, where it did
TASK_ORPHANED = "task_orphaned"
SOLVE_RETRIED = "solve_retried"
TOKEN_RENEWED = "token_renewed"
WEAK_EVIDENCE = "weak_evidence"
RELEASE_CHANGED = "release_changed"
STANDIN_IN_USE = "standin_in_use"  # a backend still asks the stand-in when the run ends
KEY_NOT_CLOSED = "key_not_closed"
CREATED = "created"  # what a success left on the site, for `cleanup`
CONFIRMATION = "confirmation"  # a fresh token was refused, a second one is tried
EXTENSION_FAILED = "extension_failed"  # code of the team raised; what it was told of stands without it
EXTENSION_REFUSED = "extension_refused"  # a field that an extension gave is not recorded, or with a secret masked
TOKEN_REFUSED_ONCE = "token_refused_once"  # the second one was accepted: the provider's fault
TOKEN_REPORTED = "token_reported"  # the service was told what became of a token; with `code` it did not take it
