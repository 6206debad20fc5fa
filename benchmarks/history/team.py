"""The records of a made-up team, for tests and benchmarks of what reads records.

Waits are log-normal around what a type usually takes, one run in fifteen falls on a slow evening of the provider, a few
tokens need a second solve. The same seed gives the same files; runs of different seeds are different runs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from pytest_captcha_qa.model.record import AttemptLine, EventLine, Footer, Header, Line, Started, timestamp
from pytest_captcha_qa.records.lines import encode

BEGIN = 1_788_249_600.0  # 2026-09-01T08:00:00Z
_HOURS = 7
_USUAL = {"turnstile": 6.0, "recaptcha_v2": 22.0, "hcaptcha": 14.0}
_PROBES = {"presence": ("P1", "P2"), "replay": ("R1", "R2"), "binding": ("B1",), "transport": ("T1", "T2", "T3")}
FORMS: Mapping[str, str] = {
    "signup": "turnstile",
    "login": "turnstile",
    "checkout": "recaptcha_v2",
    "contact": "hcaptcha",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """What the records tell of: one environment over some releases, each tested in some runs.

    `slow` multiplies the submit of `slow_form` in the last release; `broken` forms fail there by their own fault;
    `unsafe` forms accept a used token, where probes ran.
    """

    env: str = "staging"
    project: str = "default"
    provider: str = "captchaai"
    key_mode: str = "live"
    time_scale: float = 1.0
    forms: Mapping[str, str] = field(default_factory=lambda: FORMS)
    releases: Sequence[str | None] = ("1.0.0", "1.1.0", "1.2.0")
    runs: int = 6
    per_form: int = 3
    slow_form: str = "signup"
    slow: float = 1.0
    broken: Sequence[str] = ()
    unsafe: Sequence[str] = ()
    probes: bool = False
    words: str = "the service gave no answer"
    versions: Sequence[str] = ("0.3.0", "0.3.1")
    evenings: float = 1 / 15


def write_history(folder: Path, team: Team, *, seed: int = 7) -> int:
    """Write one file a run below `folder` and return the number of attempts."""
    chance, count = random.Random(seed), 0
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(len(team.releases) * team.runs):
        lines = list(_run(team, number, seed, chance))
        count += sum(isinstance(line, AttemptLine) for line in lines)
        (folder / f"{seed}-{number:05}.jsonl").write_bytes(b"".join(map(encode, lines)))
    return count


def _run(team: Team, number: int, seed: int, chance: random.Random) -> Iterator[Line]:
    release = team.releases[number // team.runs]
    began, run_id = BEGIN + 3600 * _HOURS * number, f"{seed}-{number:05}"
    yield Header(
        ts=timestamp(began),
        tool="pytest-captcha-qa 0.3.0",
        run_id=run_id,
        env=team.env,
        release=release,
        time_scale=team.time_scale,
    )
    evening, attempts = chance.random() < team.evenings, 0
    for slug, captcha in team.forms.items():
        for _ in range(team.per_form):
            attempts += 1
            ids = {
                "ts": timestamp(began + 20 * attempts),
                "id": f"{seed:08x}{number:08x}{attempts:016x}",
                "run_id": run_id,
            }
            attempt = _attempt(team, ids, (slug, captcha, release), evening, chance)
            yield _started(attempt)
            yield attempt
    if evening:
        yield EventLine(ts=timestamp(began), name="store_degraded", run_id=run_id, data={"store": "redis"})
    if team.probes and number % team.runs == team.runs - 1:
        yield from _probes(team, began, run_id)
    yield Footer(ts=timestamp(began + 20 * attempts + 5), run_id=run_id, complete=True, attempts=attempts)


def _started(attempt: AttemptLine) -> Started:
    names = [one.name for one in fields(Started)]
    return Started(**{name: getattr(attempt, name) for name in names})


def _attempt(
    team: Team, ids: Mapping[str, Any], form: tuple[str, str, str | None], evening: bool, chance: random.Random
) -> AttemptLine:
    slug, captcha, release = form
    newest = release == team.releases[-1]
    down = evening and chance.random() < 0.3
    broken = newest and slug in team.broken
    wait = round(chance.lognormvariate(0, 0.3) * _USUAL.get(captcha, 9.0) * (1.8 if evening else 1.0), 3)
    slow = team.slow if newest and slug == team.slow_form else 1.0
    ours = {name: round(chance.lognormvariate(0, 0.2) * usual, 3) for name, usual in (("page", 0.35), ("verify", 0.12))}
    submit = round(chance.lognormvariate(0, 0.25) * 0.4 * slow, 3)
    passed = not (down or broken)
    return AttemptLine(
        **ids,
        slug=slug,
        captcha=captcha,
        task_id=ids["id"],
        wait=None if down else wait,
        verify_status="pass" if passed else "error" if down else "fail",
        env=team.env,
        release=release,
        project=team.project,
        account="main",
        provider=team.provider,
        key_mode=team.key_mode,
        purpose="check",
        expect="accept",
        outcome="ok" if passed else "failed",
        fault=None if passed else "provider" if down else "product",
        error=None if passed else {"code": "provider_unavailable" if down else "refused_twice", "message": team.words},
        source="solved",
        generation=1,
        submits=1 + (chance.random() < 0.04),
        polls=5,
        seconds={"blocked": wait, "solve": wait} if down else {"blocked": wait, "submit": submit, **ours},
        token_prefix="03AGdB",
        http_status=303 if passed else None,
        variant=None,
        attempt=1,
        worker="gw0",
        worker_version=chance.choice(team.versions),
        nodeid=f"suites/test_{captcha}.py::test_ok[{slug}]",
    )


def _probes(team: Team, began: float, run_id: str) -> Iterator[EventLine]:
    for slug in team.forms:
        for family, names in _PROBES.items():
            for name in names:
                unsafe = slug in team.unsafe and name == "R1"
                data = {
                    "probe": name,
                    "form": slug,
                    "slug": slug,
                    "family": family,
                    "title": "a used token is sent again",
                    "severity": "high",
                    "verdict": "unsafe" if unsafe else "safe",
                    "reason": team.words,
                    "fails": unsafe,
                    "counts": unsafe,
                    "key_mode": team.key_mode,
                }
                yield EventLine(ts=timestamp(began), name="probe", run_id=run_id, data=data)
