"""Many submits at once, or large ones: destructive, so only when asked for and allowed by the proof."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial

from pytest_captcha_qa.conformance.judge import Judged, worst
from pytest_captcha_qa.conformance.limits import LIMITED, sign_of_limit
from pytest_captcha_qa.conformance.probe import Family, Keys, Probe
from pytest_captcha_qa.conformance.trial import MADE_UP, Trial
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.draft import Draft
from pytest_captcha_qa.model.form import Effect
from pytest_captcha_qa.model.probing import ProbeVerdict, Severity

PARALLEL = 5
POSTS = 30
PER_SECOND = 5
LOCKOUT_TRIES = 3
_SLOWEST = 1.0  # seconds between two submits
_SIZES = (2049, 5000, 100_000)


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
    nobody = trial.services.identity()  # a limit may be one of the account; this one is thrown away
    answers: list[Answer] = []
    for _ in range(posts):
        began = trial.services.clock.monotonic()
        judged = trial.post("a made-up token", _made_up, harmless=_limits, identity=nobody)
        if (ended := _ended(judged, answers)) is not None:
            return ended
        trial.wait(max(0.0, began + 1 / PER_SECOND - trial.services.clock.monotonic()))
    if posts < POSTS:
        return judged.saying(f"no limit in {posts} tries, the most that a lockout allows", ProbeVerdict.INCONCLUSIVE)
    pace = min(PER_SECOND, 1 / trial.form.spacing) if trial.form.spacing else PER_SECOND
    return judged.saying(f"no limit answered {posts} refused submits at {pace:g} a second", ProbeVerdict.UNSAFE)


def _too_slow(trial: Trial) -> str | None:
    """Return why no limit can be met at the form's own rate, which all submits keep."""
    every = trial.form.spacing
    return f"the form's rate, a submit every {every:g} s, is kept, so no limit is met" if every > _SLOWEST else None


def _ended(judged: Judged, before: list[Answer]) -> Judged | None:
    """Return what ends the posts, None while each is refused as those before, to which this one is added."""
    if judged.answer is None or judged.accepted or judged.doubtful:
        return judged
    if (sign := sign_of_limit(before, judged.answer)) is not None:
        return judged.saying(f"{sign.what} after {len(before) + 1} refused submits", sign.verdict)
    before.append(judged.answer)
    return None if judged.safe else judged


def _made_up(draft: Draft) -> Draft:
    return draft.with_token(MADE_UP)


def _limits(answer: Answer) -> bool:
    return answer.status in LIMITED


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
        "thirty refused submits at five a second, until the answer changes", "a limit answers",
        no_limit, needs_control=False, meaningless=_too_slow,
        why_destructive="it may lock an account or an address out",
    ),
)  # fmt: skip
