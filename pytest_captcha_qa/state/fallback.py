"""The port StateStore over a shared store that may be lost: a worker then goes on alone, as far as it may (R1.7).

What that may cost is a second task for a key (W4), never a token sent twice: a token that the shared store may know, or
that somebody could still get by a task id it knows, is not used alone. Only task ids are brought back.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.key_state import KeyState
from pytest_captcha_qa.engine.store import (
    AlreadyMine,
    Claim,
    Expired,
    Granted,
    Lease,
    Ready,
    Resume,
    Spend,
    StateStore,
    Won,
)
from pytest_captcha_qa.errors import OwnerLost, StoreUnavailable
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes, OnStoreLoss
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.state.apart import OwnKeys
from pytest_captcha_qa.state.outage import Outage

Write = Callable[[StateStore, Lease], object]


class FallbackStore:
    """The port StateStore: the shared store while it can be reached, else this process's own keys."""

    def __init__(
        self,
        shared: StateStore,
        own: OwnKeys,
        outage: Outage,
        on_loss: OnStoreLoss,
        emit: events.Emit = events.silent,
    ) -> None:
        """Go on without `shared` as `on_loss` says."""
        self._shared, self._own, self._outage, self._on_loss, self._emit = shared, own, outage, on_loss, emit
        self._given: set[str] = set()  # nonces of leases of the shared store
        self._known: set[str] = set()  # ids of tasks that the shared store knows, or perhaps
        self._alone: dict[str, Lease] = {}  # by key, the lease under which a task was submitted alone
        self._instead: dict[str, Lease] = {}  # by nonce, the lease that the shared store gave for one of our own
        outage.afterwards(self._bring_tasks_back)

    def claim(self, key: str, fingerprint: Fingerprint, owner: str, *, times: KeyTimes, fresh: bool = False) -> Claim:
        """Ask what to do about a key."""

        def ask(store: StateStore) -> Claim:
            return store.claim(key, fingerprint, owner, times=times, fresh=fresh)

        if self._is_apart(key):
            return ask(self._own)
        try:
            answer = self._outage.reach(lambda: ask(self._shared))
        except StoreUnavailable as lost:
            self._go_on_after(lost, held=self._own.is_held(key))
            self._own.take_apart(key)
            return ask(self._own)
        self._own.adopt(key, fingerprint, times, answer)
        if isinstance(answer, Granted | Resume):
            self._given.add(answer.lease.nonce)
        if isinstance(answer, Resume):
            self._known.add(answer.task_id)
        return answer

    def intend(self, lease: Lease) -> None:
        """Say that a submit is about to be sent; one that is sent alone is an event."""
        if self._write(lease, lambda store, held: store.intend(held)) is not None:
            self._emit(events.Event(events.SUBMITTED_ALONE, {"key": lease.key[:8]}))

    def submitted(self, lease: Lease, task_id: str) -> None:
        """Store the provider's task id."""
        lost = self._write(lease, lambda store, held: store.submitted(held, task_id))
        if lost is None or lost.sent:
            self._known.add(task_id)
        if lost is not None:
            self._alone[lease.key] = lease

    def renew(self, lease: Lease, *, last_not_ready: float | None = None) -> None:
        """Extend the lease; where the shared store cannot be asked, the next renewal will do."""
        if not self._is_apart(lease.key):
            try:
                self._outage.reach(lambda: self._shared.renew(self._held(lease), last_not_ready=last_not_ready))
            except StoreUnavailable as lost:
                self._go_on_after(lost)
            with suppress(OwnerLost):
                self._own.renew(lease, last_not_ready=last_not_ready)
            return
        self._own.renew(lease, last_not_ready=last_not_ready)

    def solved(self, lease: Lease, solution: Solution, *, age_bound: float) -> Ready:
        """Store the token; one of a task that the shared store knows is offered, but can be spent only there."""
        if not self._is_apart(lease.key):
            held = self._held(lease)
            try:
                ready = self._outage.reach(lambda: self._shared.solved(held, solution, age_bound=age_bound))
            except StoreUnavailable as lost:
                self._go_on_after(lost)
            else:
                self._own.forget(lease.key)
                return ready
        others_may_get_it = self._own.task_of(lease.key) in self._known
        ready = self._own.solved(lease, solution, age_bound=age_bound)
        if others_may_get_it:
            self._own.forget(lease.key)
        else:
            self._own.take_apart(lease.key)
        return ready

    def spend(self, ready: Ready, consumer: str) -> Spend:
        """Consume the token; one of the shared store counts as expired while that cannot be asked."""
        if self._is_apart(ready.key):
            return self._own.spend(ready, consumer)
        try:
            answer = self._outage.reach(lambda: self._shared.spend(ready, consumer))
        except StoreUnavailable as lost:
            self._go_on_after(lost)
            self._own.forget(ready.key)
            self._own.take_apart(ready.key)
            return Expired()
        if isinstance(answer, Won | AlreadyMine):
            self._given.add(answer.lease.nonce)
            self._own.adopt_spent(answer.lease)
        return answer

    def unspend(self, lease: Lease) -> None:
        """Give a spent token back; where the shared store cannot be asked, it is lost."""
        if self._is_apart(lease.key):
            self._own.unspend(lease)
            return
        try:
            self._outage.reach(lambda: self._shared.unspend(lease))
        except StoreUnavailable as lost:
            self._go_on_after(lost)
        self._own.forget(lease.key)

    def done(self, lease: Lease, outcome: str, *, session: str | None = None) -> None:
        """Close the key with what came of it."""
        self._write(lease, lambda store, held: store.done(held, outcome, session=session))

    def failed(self, lease: Lease, code: str, *, not_before: float | None = None) -> None:
        """Close the try; `not_before`: seconds until a retry may start, None: never."""
        self._write(lease, lambda store, held: store.failed(held, code, not_before=not_before))

    def verified(self, key: str, generation: int, verdict: str) -> None:
        """Keep the backend's verdict beside the key, if it can be kept."""
        if self._is_apart(key):
            self._own.verified(key, generation, verdict)
            return
        try:
            self._outage.reach(lambda: self._shared.verified(key, generation, verdict))
        except StoreUnavailable as lost:
            self._go_on_after(lost)

    def close(self) -> None:
        """Close the shared store, and forget what is known here."""
        self._shared.close()
        self._own.close()

    def _write(self, lease: Lease, write: Write) -> StoreUnavailable | None:
        """Write to the shared store and know the same here, else here alone; then return what kept it from there."""
        lost: StoreUnavailable | None = StoreUnavailable("the key is answered for in this process")
        if not self._is_apart(lease.key):
            try:
                self._outage.reach(lambda: write(self._shared, self._held(lease)))
                lost = None
            except StoreUnavailable as error:
                self._go_on_after(error)
                lost = error
        if lost is None:
            with suppress(OwnerLost):
                write(self._own, lease)
            return None
        write(self._own, lease)
        self._own.take_apart(lease.key)
        return lost

    def _is_apart(self, key: str) -> bool:
        """Whether a key is answered for here, after a look for the store, which may want its tasks back."""
        self._outage.notice()
        return self._own.is_apart(key)

    def _held(self, lease: Lease) -> Lease:
        return self._instead.get(lease.nonce, lease)

    def _go_on_after(self, lost: StoreUnavailable, *, held: bool = True) -> None:
        """Raise what was lost where work is not to go on alone."""
        if self._on_loss is OnStoreLoss.STOP or (self._on_loss is OnStoreLoss.OWNED and not held):
            raise lost

    def _bring_tasks_back(self) -> int:
        """Tell the shared store the tasks that were submitted alone, so that others can resume them."""
        return sum(self._brought_back(key, state, task.id) for key, state, task in list(self._own.tasks()))

    def _brought_back(self, key: str, state: KeyState, task_id: str) -> bool:
        lease = self._alone.get(key)
        if lease is None or lease.nonce != state.holder.nonce:
            return False
        try:
            there = self._accepted(lease, state, task_id)
        except OwnerLost:
            return False
        if there is None:
            return False
        self._known.add(task_id)
        self._instead[lease.nonce] = there
        self._own.give_back(key)
        return True

    def _accepted(self, lease: Lease, state: KeyState, task_id: str) -> Lease | None:
        """Return the lease under which the shared store has taken the task, None if somebody is at the key there."""
        if lease.nonce in self._given:
            with suppress(OwnerLost):  # the submit was announced there, or its id came through after all
                self._shared.submitted(lease, task_id)
                return lease
            there = lease
        else:
            claim = self._shared.claim(lease.key, state.request, lease.owner, times=lease.times)
            if not isinstance(claim, Granted):
                return None
            there = claim.lease
        self._shared.intend(there)
        self._shared.submitted(there, task_id)
        return there
