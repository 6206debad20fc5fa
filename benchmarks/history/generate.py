"""Made-up history as record files: releases with runs, forms of several types, runs that differ, outages, failures.

python -m history.generate FOLDER ATTEMPTS [SEED]
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

# Form, captcha type, median wait in seconds.
FORMS = (
    ("signup", "recaptcha_v2", 22.0),
    ("login", "turnstile", 8.0),
    ("contact", "hcaptcha", 30.0),
    ("checkout", "recaptcha_v3", 12.0),
    ("reset", "recaptcha_v2", 22.0),
    ("news", "geetest_v4", 9.0),
    ("support", "turnstile", 8.0),
    ("price", "image", 4.0),
)
_SPREAD = 0.3  # sigma of log-normal times
_BEGIN = datetime(2026, 1, 5, 3, 0, tzinfo=UTC)
_BETWEEN_RUNS = timedelta(hours=8)


@dataclass(frozen=True, slots=True)
class World:
    """What history is to look like.

    `slower` multiplies the page times of the last release; `run_effect` is the sigma of what attempts of a run share;
    `failures` and `outages` are shares of attempts. `foreign`: as another program may write them, with spaces, keys in
    the order of the alphabet, ids of another kind, and no line before an attempt.
    """

    attempts: int
    releases: int = 20
    runs: int = 400
    slower: float = 1.25
    run_effect: float = 0.05
    failures: float = 0.004
    outages: float = 0.003
    env: str = "staging"
    seed: int = 1
    foreign: bool = False


def generate(folder: Path, world: World) -> Path:
    """Write the record files of a world to `<folder>/<env>/` and return the folder; the same seed gives the same."""
    place = folder / world.env
    place.mkdir(parents=True, exist_ok=True)
    chance = random.Random(world.seed)
    for number in range(world.runs):
        count = world.attempts * (number + 1) // world.runs - world.attempts * number // world.runs
        path = place / f"run-{number:05d}.jsonl"
        lines = _run(chance, world, number, count)
        path.write_text("".join(_rewritten(lines) if world.foreign else lines), encoding="utf-8")
    return folder


def _rewritten(lines: Iterator[str]) -> Iterator[str]:
    for text in lines:
        for line in text.splitlines():
            said = json.loads(line)
            if said["$type"] == "attempt":
                said["id"] = str(UUID(said["id"]))
            if said["$type"] != "started":
                yield json.dumps(dict(sorted(said.items()))) + "\n"


def release_of(world: World, run: int) -> str:
    """Return the release that a run tested."""
    return f"1.{run * world.releases // world.runs}.0"


def _run(chance: random.Random, world: World, number: int, count: int) -> Iterator[str]:
    run_id, release = f"run-{number:05d}", release_of(world, number)
    moment = _BEGIN + number * _BETWEEN_RUNS
    shared = chance.lognormvariate(0, world.run_effect)
    last = release == release_of(world, world.runs - 1)
    yield (
        f'{{"$type":"header","ts":"{_ts(moment)}","schema":1,"tool":"pytest-captcha-qa 0.3.0","run_id":"{run_id}",'
        f'"env":"{world.env}","release":"{release}","time_scale":1.0,"shard":null}}\n'
    )
    for _ in range(count):
        moment += timedelta(seconds=1 + chance.random())
        yield _attempt(chance, world, (run_id, release), _ts(moment), (shared, world.slower if last else 1.0))
    yield f'{{"$type":"footer","ts":"{_ts(moment)}","run_id":"{run_id}","complete":true,"attempts":{count}}}\n'


def _attempt(chance: random.Random, world: World, run: tuple[str, str], ts: str, factors: tuple[float, float]) -> str:
    (run_id, release), (shared, slower) = run, factors
    slug, kind, median = chance.choice(FORMS)
    wait = median * shared * chance.lognormvariate(0, _SPREAD)
    page, submit = 0.4 * slower * shared * chance.lognormvariate(0, _SPREAD), 0.3 * chance.lognormvariate(0, _SPREAD)
    said, status, submits = _ends(chance, world)
    attempt_id = f"{chance.getrandbits(128):032x}"
    node = f"suites/test_forms.py::test_accepts[{slug}]"
    return (
        f'{{"$type":"started","ts":"{ts}","id":"{attempt_id}","slug":"{slug}","type":"{kind}","env":"{world.env}",'
        f'"run_id":"{run_id}","purpose":"check","expect":"accept","nodeid":"{node}","worker":"gw0",'
        '"project":"default","account":"main","key_mode":"live"}\n'
        f'{{"$type":"attempt","ts":"{ts}","id":"{attempt_id}","slug":"{slug}","type":"{kind}",'
        f'"task_id":"{chance.getrandbits(33)}","wait":{wait:.3f},"verify_status":"{status}","env":"{world.env}",'
        f'"release":"{release}","run_id":"{run_id}","project":"default","account":"main","provider":"captchaai",'
        f'"key_mode":"live","purpose":"check","expect":"accept",{said},"source":"solved","generation":1,'
        f'"submits":{submits},"polls":5,"seconds":{{"blocked":{wait + 0.1:.3f},"queue":0.1,"solve":{wait * 0.9:.3f},'
        f'"detect":0.8,"page":{page:.3f},"submit":{submit:.3f},"verify":0.1}},"token_prefix":"03AGdB",'
        f'"http_status":303,"variant":null,"attempt":1,"worker":"gw0","worker_version":"0.3.0","nodeid":"{node}",'
        '"synthetic":true}\n'
    )


def _ends(chance: random.Random, world: World) -> tuple[str, str, int]:
    """Return outcome, fault and error as they stand in a line, the verification and how many solves it took."""
    what = chance.random()
    if what < world.failures:
        error = '{"code":"refused","message":"the form refused two fresh tokens"}'
        return f'"outcome":"failed","fault":"product","error":{error}', "fail", 2
    if what < world.failures + world.outages:
        error = '{"code":"provider_unavailable","message":"the provider gave no usable answer three times"}'
        return f'"outcome":"indeterminate","fault":"provider","error":{error}', "skipped", 1
    return '"outcome":"ok","fault":null,"error":null', "pass", 2 if what > 0.99 else 1


def _ts(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


if __name__ == "__main__":
    generate(Path(sys.argv[1]), World(int(sys.argv[2]), seed=int(sys.argv[3]) if len(sys.argv) > 3 else 1))
