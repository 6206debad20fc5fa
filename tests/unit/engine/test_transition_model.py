"""Every reachable order of two workers, crashes, lapsed leases and lost replies over one key (state.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest

from pytest_captcha_qa.engine import transitions
from pytest_captcha_qa.engine.key_state import KeyState, State
from pytest_captcha_qa.engine.store import AlreadyMine, Busy, Expired, Granted, Lease, Lost, Ready, Resume, Won
from pytest_captcha_qa.engine.transitions import ClaimRequest, Moment
from pytest_captcha_qa.errors import OwnerLost
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.model.token import Solution

KEY = "k"
TIMES = KeyTimes(lease=30, renew=10, http=30, solve=300, redelivery=90, keep=110)
FORM = Fingerprint("form")


class Budget(NamedTuple):
    """How often each mishap may still strike."""

    crashes: int = 0
    lapses: int = 0
    lost_replies: int = 0
    refusals: int = 0
    restarts: int = 0
    give_backs: int = 0


class Worker(NamedTuple):
    """What one worker does next, and what it holds in memory for it."""

    name: str
    fresh: bool
    life: int = 0
    step: str = "claim"
    lease: Lease | None = None
    task: int = 0
    offer: tuple[int, int] = (0, 0)  # generation and task whose token it is

    @property
    def owner(self) -> str:
        return f"{self.name}{self.life}"

    def stopped(self, step: str) -> Worker:
        return Worker(self.name, self.fresh, self.life, step)


class World(NamedTuple):
    """The key in the store, both workers, and what happened outside."""

    key: KeyState | None
    workers: tuple[Worker, ...]
    left: Budget
    epoch: int = 0
    nonces: int = 0
    submits: int = 0
    windows: int = 0
    retries: int = 0
    generations: int = 0
    posted: tuple[int, ...] = ()
    spent: tuple[tuple[int, str], ...] = ()

    def at(self) -> Moment:
        return Moment(0.0, str(self.epoch), f"n{self.nonces}")


def token(task: int) -> Solution:
    return Solution({"token": str(task)})


def held(worker: Worker) -> Lease:
    assert worker.lease is not None
    return worker.lease


def do_claim(world: World, worker: Worker) -> tuple[World, Worker]:
    request = ClaimRequest(KEY, FORM, worker.owner, TIMES, worker.fresh)
    key, answer = transitions.claim(world.key, request, world.at())
    new = world.key is None or key.holder.nonce != world.key.holder.nonce
    world = world._replace(key=key, nonces=world.nonces + new)
    match answer:
        case Granted(lease, tries, event, _):
            if new:  # a repeated grant is no second window
                world = world._replace(
                    windows=world.windows + (event is not None),
                    retries=world.retries + (tries > 0),
                    generations=max(world.generations, lease.generation),
                )
            return world, worker._replace(step="intend", lease=lease)
        case Resume(lease, task_id):
            return world, worker._replace(step="solved", lease=lease, task=int(task_id))
        case Ready(_, generation, solution):
            task = int(solution.text)
            assert task not in {each for each, _ in world.spent}, f"a spent token was handed out: {world}"
            return world, worker._replace(step="spend", offer=(generation, task))
        case Busy():
            return world, worker
    return world, worker.stopped("end")


def do_intend(world: World, worker: Worker) -> tuple[World, Worker]:
    key = transitions.intend(world.key, held(worker), world.at())
    return world._replace(key=key), worker._replace(step="submit")


def do_submit(world: World, worker: Worker) -> tuple[World, Worker]:
    task = world.submits + 1
    return world._replace(submits=task), worker._replace(step="submitted", task=task)


def do_submitted(world: World, worker: Worker) -> tuple[World, Worker]:
    key = transitions.submitted(world.key, held(worker), str(worker.task), world.at())
    return world._replace(key=key), worker._replace(step="solved")


def do_solved(world: World, worker: Worker) -> tuple[World, Worker]:
    key, offer = transitions.solved(world.key, held(worker), token(worker.task), 0, world.at())
    return world._replace(key=key), worker._replace(step="spend", offer=(offer.generation, worker.task))


def do_spend(world: World, worker: Worker) -> tuple[World, Worker]:
    generation, task = worker.offer
    offer = Ready(KEY, generation, token(task), 0, 0, TIMES)
    key, answer = transitions.spend(world.key, offer, worker.owner, world.at())
    world = world._replace(key=key)
    match answer:
        case Won(lease):
            world = world._replace(nonces=world.nonces + 1, spent=(*world.spent, (task, worker.owner)))
            return world, worker._replace(step="post", lease=lease)
        case AlreadyMine(lease):
            return world, worker._replace(step="post", lease=lease)
        case Lost() | Expired():
            return world, worker.stopped("claim")


def do_post(world: World, worker: Worker) -> tuple[World, Worker]:
    return world._replace(posted=(*world.posted, worker.offer[1])), worker._replace(step="done")


def do_done(world: World, worker: Worker) -> tuple[World, Worker]:
    key = transitions.done(world.key, held(worker), "ok", None, world.at())
    return world._replace(key=key), worker.stopped("end")


def do_failed(world: World, worker: Worker) -> tuple[World, Worker]:
    key = transitions.failed(world.key, held(worker), "unsolvable", 0, world.at())
    return world._replace(key=key), worker.stopped("claim")


def do_unspend(world: World, worker: Worker) -> tuple[World, Worker]:
    key = transitions.unspend(world.key, held(worker), world.at())
    undone = tuple(each for each in world.spent if each != (worker.offer[1], worker.owner))
    return world._replace(key=key, spent=undone), worker.stopped("claim")


STEPS = {
    "claim": do_claim,
    "intend": do_intend,
    "submit": do_submit,
    "submitted": do_submitted,
    "solved": do_solved,
    "spend": do_spend,
    "post": do_post,
    "done": do_done,
}
OUTSIDE = {"submit", "post"}  # no call to the store, so no reply of it to lose


def stepped(world: World, number: int, name: str) -> tuple[World, Worker]:
    worker = world.workers[number]
    mishaps = {"failed": do_failed, "unspend": do_unspend}
    try:
        return (STEPS | mishaps)[name](world, worker)
    except OwnerLost:  # whoever has posted only wanted to say so
        return world, worker.stopped("end" if name == "done" else "claim")


def with_worker(world: World, number: int, worker: Worker) -> World:
    workers = list(world.workers)
    workers[number] = worker
    return world._replace(workers=tuple(workers))


def worker_moves(world: World, number: int) -> Iterator[World]:
    worker, left = world.workers[number], world.left
    if worker.step == "end":
        return
    after, moved = stepped(world, number, worker.step)
    yield with_worker(after, number, moved)
    if (
        left.lost_replies and worker.step not in OUTSIDE and after.key != world.key
    ):  # it happened, but the worker will call again
        yield after._replace(left=left._replace(lost_replies=left.lost_replies - 1))
    if left.crashes and worker.step != "claim":
        reborn = Worker(worker.name, worker.fresh, worker.life + 1)
        yield with_worker(world, number, reborn)._replace(left=left._replace(crashes=left.crashes - 1))
    if left.refusals and worker.step in ("submitted", "solved"):
        after, moved = stepped(world, number, "failed")
        yield with_worker(after, number, moved)._replace(left=left._replace(refusals=left.refusals - 1))
    if left.give_backs and worker.step == "post":
        after, moved = stepped(world, number, "unspend")
        yield with_worker(after, number, moved)._replace(left=left._replace(give_backs=left.give_backs - 1))


def time_moves(world: World) -> Iterator[World]:
    left, key = world.left, world.key
    if key is None:
        return
    if left.lapses:
        moments = {key.holder.until} | ({key.token.expires_at} if key.token else set())
        for moment in sorted(each for each in moments if each > 0):
            yield world._replace(key=earlier(key, moment), left=left._replace(lapses=left.lapses - 1))
    if left.restarts:
        yield world._replace(epoch=world.epoch + 1, left=left._replace(restarts=left.restarts - 1))


def earlier(key: KeyState, seconds: float) -> KeyState:
    """Shift all moments of the key, so that it is zero o'clock again after so many seconds."""
    return replace(
        key,
        holder=replace(key.holder, until=key.holder.until - seconds),
        keep_until=key.keep_until - seconds,
        task=key.task
        and replace(
            key.task,
            submitted_at=key.task.submitted_at - seconds,
            not_ready_at=key.task.not_ready_at - seconds,
            resume_until=key.task.resume_until - seconds,
        ),
        token=key.token
        and replace(
            key.token,
            not_ready_at=key.token.not_ready_at - seconds,
            expires_at=key.token.expires_at - seconds,
        ),
        failure=key.failure and replace(key.failure, not_before=0.0, forget_at=key.failure.forget_at - seconds),
    )


def check(world: World) -> None:
    times_posted = Counter(world.posted)
    assert max(times_posted.values(), default=0) <= 1, f"a token was posted twice: {world}"
    assert len({task for task, _ in world.spent}) == len(world.spent), f"a token was spent twice: {world}"
    allowed = world.generations + world.windows + world.retries
    assert world.submits <= allowed, f"a submit outside the named windows: {world}"
    if not any(worker.fresh for worker in world.workers):
        assert len(world.posted) <= 1, f"the form was posted twice: {world}"
    if world.key is not None:
        nonce = world.key.holder.nonce
        writers = [each for each in world.workers if each.lease and each.lease.nonce == nonce]
        assert len(writers) <= 1, f"two workers can write: {world}"
        if world.key.state is State.READY:
            ready_task = int(world.key.token.solution.text) if world.key.token else 0
            assert ready_task not in times_posted, f"a posted token is offered: {world}"


def identity(world: World) -> object:
    key = world.key
    if key is None:
        return world
    token_part = key.token and (
        key.token.solution.text,
        key.token.expires_at,
        key.token.epoch,
        key.token.nonce,
    )
    return world._replace(key=replace(key, token=None)), token_part


def explore(start: World) -> tuple[int, set[State], list[World]]:
    """Return how many worlds there are, the states of the key seen, and the worlds nobody can leave."""
    seen = {identity(start)}
    pending = [start]
    states: set[State] = set()
    final = []
    while pending:
        world = pending.pop()
        check(world)
        if world.key is not None:
            states.add(world.key.state)
        moves = [move for number in (0, 1) for move in worker_moves(world, number)]
        if all(worker.step == "end" for worker in world.workers):
            final.append(world)
        for move in [*moves, *time_moves(world)]:
            name = identity(move)
            if name not in seen:
                seen.add(name)
                pending.append(move)
    return len(seen), states, final


@pytest.mark.parametrize(
    ("fresh", "budget"),
    [
        pytest.param((False, False), Budget(crashes=2, lapses=2), id="two crashes"),
        pytest.param((False, False), Budget(lapses=1, lost_replies=1, refusals=1, give_backs=1), id="refusal"),
        pytest.param((False, False), Budget(crashes=1, lapses=1, lost_replies=1, restarts=1), id="restart"),
        pytest.param((True, False), Budget(crashes=1, lapses=1, lost_replies=1), id="one fresh"),
        pytest.param((True, True), Budget(crashes=1, lapses=1), id="both fresh"),
    ],
)
def test_no_order_of_mishaps_breaks_the_invariants(fresh: tuple[bool, bool], budget: Budget) -> None:
    start = World(None, (Worker("a", fresh[0]), Worker("b", fresh[1])), budget)
    worlds, states, final = explore(start)
    assert worlds > 1000
    assert states >= set(State) - {State.FAILED}
    assert final
