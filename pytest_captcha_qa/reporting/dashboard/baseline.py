"""What a page compares with: a release, the previous one, or the release in other record files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pytest_captcha_qa.reporting.comparison.references import known_releases, open_baseline, records_meant
from pytest_captcha_qa.reporting.wording import some_of

_RELEASES = (
    "SELECT env, list(DISTINCT release) FILTER (release IS NOT NULL) FROM runs WHERE env IS NOT NULL GROUP BY env"
)


@dataclass(frozen=True, slots=True)
class Baseline:
    """What was named: a release, `previous`, or record files with the releases in them by environment.

    The records of such files are read with all others, so that trends show them, too.
    """

    reference: str | None = None
    records: tuple[Path, ...] = ()
    releases: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def asked_in(self, env: str) -> tuple[str | None, str | None]:
        """Return the release to compare with in an environment, and why there is none."""
        if not self.records:
            return self.reference, None
        named = self.releases.get(env)
        if named is None:
            return None, f"the baseline {self.reference} holds no run of environment {env!r}"
        if len(named) == 1:
            return named[0], None
        what = (
            f"holds several releases ({some_of([*named])}); name one of them" if named else "does not know its release"
        )
        return None, f"the baseline {self.reference} {what}"


def find_baseline(reference: str | None, folder: Path, sources: Sequence[Path]) -> Baseline:
    """Return what a reference means: a release in `sources`, or record files below `folder`.

    Raises:
        BaselineMissing: the files cannot be read.
        ConfigError: the sources cannot.
    """
    path = records_meant(reference, folder, partial(_releases_in, sources))
    if reference is None or path is None:
        return Baseline(reference)
    with open_baseline(reference, path) as dataset:
        found = dataset.rows(_RELEASES)
    return Baseline(reference, (path,), {str(env): releases or () for env, releases in found})


def _releases_in(sources: Sequence[Path]) -> set[str]:
    from pytest_captcha_qa.reporting.dataset import open_dataset

    with open_dataset(sources) as dataset:
        return known_releases(dataset)
