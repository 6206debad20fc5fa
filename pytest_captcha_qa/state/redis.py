"""Both ports on a Redis or Valkey, shared by all machines that reach it.

Every call is one script, so one round trip, and the server's clock counts. All keys of one captcha key have one hash
tag, and every cell of the limits is one key, so both stay within one slot of a cluster.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from pytest_captcha_qa.engine.key_state import KeyState, plain_solution
from pytest_captcha_qa.engine.store import Claim, Lease, Ready, Spend, Streak
from pytest_captcha_qa.engine.transitions import owner_lost
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.state import redis_replies as replies
from pytest_captcha_qa.state.listing import KeyView, view
from pytest_captcha_qa.state.packed import Packed
from pytest_captcha_qa.state.redis_link import Arguments, RedisLink
from pytest_captcha_qa.state.scripts import limits, transition

_PREFIX = "captcha"
_PARTS = ("meta", "lease", "task", "token", "verify", "session")
_SCANNED = 500  # keys looked at in one step
_NO_TIMES = KeyTimes(0, 0, 0, 0, 0, 0)

Clock = Callable[[], float]


class RedisStore:
    """Keys on a server; the epoch of what is stored is the server's run id."""

    def __init__(self, link: RedisLink, *, clock: Clock | None = None, epoch: str | None = None) -> None:
        """Use the server's own clock and run id; `clock` and `epoch` put a test's in their place."""
        self._link = link
        self._clock = clock
        self.epoch = epoch

    def claim(self, key: str, fingerprint: Fingerprint, owner: str, *, times: KeyTimes, fresh: bool = False) -> Claim:
        """Ask what to do about a key."""
        words = (owner, fingerprint.digest, fingerprint.page or "", int(fresh))
        return replies.claim(self._run("claim", key, times, *words), key, owner, times)

    def intend(self, lease: Lease) -> None:
        """Say that a submit is about to be sent."""
        self._write("intend", lease)

    def submitted(self, lease: Lease, task_id: str) -> None:
        """Store the provider's task id."""
        self._write("submitted", lease, task_id, task_id=task_id)

    def renew(self, lease: Lease, *, last_not_ready: float | None = None) -> None:
        """Extend the lease; `last_not_ready`: seconds since a poll said "not ready"."""
        self._write("renew", lease, _optional(last_not_ready))

    def solved(self, lease: Lease, solution: Solution, *, age_bound: float) -> Ready:
        """Store the token; `age_bound`: seconds since the last "not ready", else since the submit."""
        stored = json.dumps(plain_solution(solution))
        reply = self._write("solved", lease, _digest(solution), float(age_bound), stored)
        return replies.ready(reply, lease.key, lease.times, solution)

    def spend(self, ready: Ready, consumer: str) -> Spend:
        """Consume the token of this generation; exactly one consumer wins."""
        reply = self._run("spend", ready.key, ready.times, ready.generation, _digest(ready.solution), consumer)
        return replies.spend(reply, ready, consumer)

    def unspend(self, lease: Lease) -> None:
        """Give a spent token back; only if not a byte of it was sent."""
        self._write("unspend", lease)

    def done(self, lease: Lease, outcome: str, *, session: str | None = None) -> None:
        """Close the key with what came of it."""
        self._write("done", lease, outcome, "" if session is None else json.dumps(session))

    def failed(self, lease: Lease, code: str, *, not_before: float | None = None) -> None:
        """Close the try; `not_before`: seconds until a retry may start, None: never."""
        self._write("failed", lease, code, _optional(not_before))

    def verified(self, key: str, generation: int, verdict: str) -> None:
        """Keep the backend's verdict beside the key."""
        self._run("verified", key, _NO_TIMES, generation, verdict)

    def peek(self, key: str) -> KeyState | None:
        """Return what is stored of a key, for inspection; it holds secrets."""
        return replies.key_state(self._run("peek", key, _NO_TIMES))

    def views(self) -> Iterator[KeyView]:
        """Yield what may be seen of each key, for an operator; a key that changes meanwhile may be left out."""
        seconds, micros = self._link.ask("TIME")
        now, cursor = int(seconds) + int(micros) / 1e6, "0"
        while True:
            cursor, found = self._link.ask("SCAN", cursor, "MATCH", f"{_PREFIX}:{{*}}:meta", "COUNT", _SCANNED)
            for name in found:
                key = name.removeprefix(f"{_PREFIX}:{{").removesuffix("}:meta")
                state = self.peek(key)
                if state is not None:
                    yield view(key, state, now)
            if cursor == "0":
                return

    def close(self) -> None:
        """Close the connections."""
        self._link.close()

    def _write(self, name: str, lease: Lease, *words: str | float, task_id: str | None = None) -> list[Any]:
        reply = self._run(name, lease.key, lease.times, lease.generation, lease.nonce, *words)
        if reply[1] == replies.LOST:
            raise owner_lost(lease, replies.found(reply), task_id)
        return reply

    def _run(self, name: str, key: str, times: KeyTimes, *words: str | float) -> list[Any]:
        """Run one transition.

        Raises:
            StoreUnavailable: the server is out of reach or refuses.
        """
        nonce = secrets.token_hex(16)

        def arguments(epoch: str) -> Arguments:
            return (_now(self._clock), self.epoch or epoch, nonce, *words)

        reply: list[Any] = self._link.run(transition(name), _head(key, times), arguments, replicated=True)
        return reply


class RedisLimits:
    """Counters and leases on the same server; one key a cell."""

    def __init__(self, link: RedisLink, *, clock: Clock | None = None) -> None:
        """Use the server's own clock; `clock` puts a test's in its place."""
        self._link = link
        self._clock = clock

    def acquire(self, slots: str, owner: str, *, limit: int, lease: float) -> bool:
        """Take one of `limit` slots for `lease` seconds; the same owner again renews its own."""
        return bool(self._run(f"slots:{slots}", "acquire", owner, limit, float(lease)))

    def release(self, slots: str, owner: str) -> None:
        """Give the slot back; nothing happens if it lapsed."""
        self._run(f"slots:{slots}", "release", owner)

    def add(self, counter: str, amount: int, *, limit: int | None, seconds: float) -> bool:
        """Add to a counter that lives `seconds` from its first use, unless it would pass `limit`."""
        return bool(self._run(f"counter:{counter}", "add", amount, "" if limit is None else limit, float(seconds)))

    def count(self, counter: str) -> int:
        """Return the counter, 0 if it is not there."""
        return int(self._run(f"counter:{counter}", "value") or 0)

    def next_allowed(self, name: str, *, spacing: float) -> float:
        """Reserve the next moment, `spacing` seconds after the previous one; return the seconds until it."""
        return float(self._run(f"next:{name}", "next_allowed", float(spacing)))

    def hold(self, name: str, *, seconds: float) -> None:
        """Give out no moment of `next_allowed` before so many seconds from now."""
        self._run(f"next:{name}", "hold", float(seconds))

    def strike(self, name: str, note: str, *, keep: float) -> Streak:
        """Count one more failure in a row and return the row; it is forgotten `keep` seconds after its last."""
        return _streak(self._run(f"streak:{name}", "strike", note, float(keep)))

    def streak(self, name: str) -> Streak | None:
        """Return the failures in a row, None if there are none."""
        row = self._run(f"streak:{name}", "streak")
        return _streak(row) if row else None

    def end_streak(self, name: str) -> None:
        """Forget the failures: there was a success."""
        self._run(f"streak:{name}", "forget")

    def raise_flag(self, name: str, value: str, *, seconds: float) -> None:
        """Set a flag for so many seconds; one that is up for longer stays as it is."""
        self._run(f"flag:{name}", "raise_flag", value, float(seconds))

    def flag(self, name: str) -> str | None:
        """Return the flag's value while it is up."""
        value: str | None = self._run(f"flag:{name}", "value")
        return value

    def lower_flag(self, name: str) -> None:
        """Take a flag down."""
        self._run(f"flag:{name}", "forget")

    def sample(self, name: str, value: float, *, keep: int = 50) -> None:
        """Add to the last `keep` samples."""
        self._run(f"samples:{name}", "sample", float(value), keep)

    def samples(self, name: str) -> list[float]:
        """Return the samples, oldest first."""
        return [float(value) for value in self._run(f"samples:{name}", "value") or []]

    def close(self) -> None:
        """Close the connections."""
        self._link.close()

    def _run(self, cell: str, action: str, *words: str | float) -> Any:
        def arguments(epoch: str) -> Arguments:
            return (_now(self._clock), action, *words)

        return self._link.run(limits(), Packed.of(1, f"{_PREFIX}:limits:{{{cell}}}"), arguments)


def _streak(row: list[str]) -> Streak:
    failures, seconds, note = row
    return Streak(int(failures), float(seconds), note)


@lru_cache(maxsize=256)
def _head(key: str, times: KeyTimes) -> Packed:
    """Return the six keys of one key, and how long things are kept."""
    keys = [f"{_PREFIX}:{{{key}}}:{part}" for part in _PARTS]
    kept = (times.lease, times.http, times.solve, times.redelivery, times.keep, times.tombstone)
    return Packed.of(len(keys), *keys, *map(float, kept))


def _now(clock: Clock | None) -> str:
    return "" if clock is None else repr(float(clock()))


def _optional(seconds: float | None) -> str:
    return "" if seconds is None else repr(float(seconds))


def _digest(solution: Solution) -> str:
    """Return what two equal tokens have in common, to compare them without showing either."""
    return hashlib.sha256(json.dumps(sorted(solution.parts.items())).encode()).hexdigest()
