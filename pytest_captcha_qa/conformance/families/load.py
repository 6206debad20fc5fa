"""Many submits at once, or large ones: destructive, so only when asked for and allowed by the proof."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial

from pytest_captcha_qa.conformance.judge import Judged, worst
from pytest_captcha_qa.conformance.probe import Family, Keys, Probe
from pytest_captcha_qa.conformance.trial import MADE_UP, Trial
from pytest_captcha_qa.model.draft import Draft
from pytest_captcha_qa.model.form import Answer, Effect
from pytest_captcha_qa.model.probing import ProbeVerdict, Severity

PARALLEL = 5
POSTS = 30
PER_SECOND = 5
LOCKOUT_TRIES = 3
_SIZES = (2049, 5000, 100_000)
_LIMITED = frozenset({423, 429, 503})


def _as_it_is(draft: Draft) -> Draft:
    return draft


def at_once(trial: Trial) -> Judged:
    """One fresh token in five submits at the same time, each from a session of its own."""
    token = trial.fresh()
    post = partial(trial.post, "one token at the same time as others", _as_it_is, token=token)
    with ThreadPoolExecutor(PARALLEL) as pool:
        done = [running.result() for running in [pool.submit(copy_context().run, post) for _ in range(PARALLEL)]]
    taken = sum(one.accepted for one in done)
    if taken > 1:
        many = next(one for one in done if one.accepted)
        return many.saying(f"{taken} of {PARALLEL} submits with one token at the same time were accepted")
    others = [one for one in done if not one.accepted]
    judged = worst(others)
    return judged.saying(f"{taken} of {PARALLEL} submits with one token were accepted") if judged.safe else judged


def no_limit(trial: Trial) -> Judged:
    """Refused submits, five a second, until a limit answers; three where an account may be locked."""
    posts = LOCKOUT_TRIES if Effect.LOCKOUT in trial.form.effects else POSTS
    done: list[Judged] = []
    for _ in range(posts):
        done.append(trial.post("a made-up token", _made_up, harmless=_limits))
        status = done[-1].http_status
        if status in _LIMITED:
            return done[-1].saying(f"a limit answered ({status}) after {len(done)} refused submits", ProbeVerdict.SAFE)
        if not done[-1].safe:
            return done[-1]
        trial.wait(1 / PER_SECOND)
    if posts < POSTS:
        return done[-1].saying(f"no limit in {posts} tries, the most that a lockout allows", ProbeVerdict.INCONCLUSIVE)
    return done[-1].saying(f"no limit answered {posts} refused submits at {PER_SECOND} a second", ProbeVerdict.UNSAFE)


def _made_up(draft: Draft) -> Draft:
    return draft.with_token(MADE_UP)


def _limits(answer: Answer) -> bool:
    return answer.status in _LIMITED


def sizes(trial: Trial) -> Judged:
    """Made-up tokens of 2049, 5000 and 100 000 characters, one submit each."""
    tries: list[Callable[[], Judged]] = [
        partial(trial.post, f"a made-up token of {size} characters", partial(_of_size, size), harmless=_too_large)
        for size in _SIZES
    ]
    return trial.each(tries)


def _of_size(size: int, draft: Draft) -> Draft:
    return draft.with_token((MADE_UP * (size // len(MADE_UP) + 1))[:size])


def _too_large(answer: Answer) -> bool:
    return answer.status in (400, 413, 414, 431)


PROBES = (
    Probe(
        "M06", Family.LOAD, "one token passes many times at once", Severity.MEDIUM, ("CWE-362", "CWE-294"),
        "one fresh token in five simultaneous submits", "at most one effect", at_once, keys=Keys.REAL_LIFE,
        accepts=PARALLEL, implies=("M05",), why_destructive="it may have five effects",
    ),
    Probe(
        "M37", Family.LOAD, "a long token passes or crashes", Severity.LOW, ("CWE-770",),
        "made-up tokens of 2049, 5000 and 100 000 characters", "refused quickly, no 500", sizes,
        keys=Keys.REAL_LIFE, why_destructive="a backend may not bear the size",
    ),
    Probe(
        "M35", Family.LOAD, "no rate limit behind the captcha", Severity.MEDIUM, ("CWE-799", "CWE-307", "WSTG-ATHN-03"),
        "thirty refused submits at five a second, until 423, 429 or 503", "a limit answers",
        no_limit, needs_control=False, why_destructive="it may lock an account or an address out",
    ),
)  # fmt: skip
