"""What a comparison had to leave out, in sentences, so that nobody takes silence for sameness."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pytest_captcha_qa.reporting.comparison.samples import Samples, Source
from pytest_captcha_qa.reporting.figures import Pool
from pytest_captcha_qa.reporting.pools import named
from pytest_captcha_qa.reporting.wording import counted, short, some_of


def reservations(before: Source, after: Source, first: Samples, second: Samples) -> Iterator[str]:
    """Yield what was left out, or needs a word, on either side."""
    for source, samples in ((before, first), (after, second)):
        yield from _left_out(source)
        yield from _outages(source, samples)
    yield from _unknown_release(before, after)
    yield from _schemas(before, after)
    yield from _one_sided_pools(before, after, first, second)
    yield from _one_sided_forms(before, after, first, second)
    yield from _modes(first, second)


def _left_out(source: Source) -> Iterator[str]:
    if source.left_out:
        names = some_of([short(run) for run in sorted(source.left_out)])
        runs = counted(len(source.left_out), "run")
        yield f"{short(source.label)}: {runs} left out, which the other side has too or whose release changed: {names}"
    if count := source.incomplete:
        yield f"{short(source.label)}: {counted(count, 'run')} ended early or lost records; what they recorded counts"


def _outages(source: Source, samples: Samples) -> Iterator[str]:
    if count := sum(sum(sample.counts()["outages"]) for sample in samples.pools.values()):
        yield f"{short(source.label)}: {counted(count, 'attempt')} left out, ended by an outage or undetermined"


def _unknown_release(before: Source, after: Source) -> Iterator[str]:
    if before.release is not None and (count := after.of_unknown_release):
        yield f"{counted(count, 'attempt')} of no known release compared with nothing; --captcha-release names it"


def _schemas(before: Source, after: Source) -> Iterator[str]:
    one, two = before.schemas, after.schemas
    if one and two and one != two:
        sides = ((before, one), (after, two))
        said = ", ".join(f"{short(source.label)}: {', '.join(map(str, found))}" for source, found in sides)
        yield f"the records are of different schemas ({said}); what only one of them holds is not compared"


def _one_sided_pools(before: Source, after: Source, first: Samples, second: Samples) -> Iterator[str]:
    for pools, others, source in ((first, second, before), (second, first, after)):
        for pool in _with_attempts(pools):
            if not others.get(pool).forms:
                yield f"{named(pool)}: only in {short(source.label)}, not compared"


def _with_attempts(samples: Samples) -> list[Pool]:
    return [pool for pool, sample in samples.pools.items() if sample.forms]


def _one_sided_forms(before: Source, after: Source, first: Samples, second: Samples) -> Iterator[str]:
    for pool in _with_attempts(first):
        one, two = first.get(pool).forms, second.get(pool).forms
        if two and one != two:
            parts = [*_only(before, one - two), *_only(after, two - one)]
            renamed = "; renamed?" if len(parts) > 1 else ""
            yield f"{named(pool)}: forms on one side are not compared: {', '.join(parts)}{renamed}"


def _only(source: Source, forms: set[str]) -> Iterator[str]:
    if forms:
        yield f"{some_of([repr(short(form)) for form in sorted(forms)])} only in {short(source.label)}"


def _modes(first: Samples, second: Samples) -> Iterator[str]:
    modes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for pool in (*_with_attempts(first), *_with_attempts(second)):
        modes[pool.project, pool.type].add(pool.key_mode)
    for (_, captcha), found in sorted(modes.items()):
        if len(found) > 1:
            names = ", ".join(map(short, sorted(found)))
            yield f"{short(captcha)}: key modes {names} prove different things; each is compared by itself"
