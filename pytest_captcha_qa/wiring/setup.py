"""What a process brings along to a run: its names, and the places of its records and of its store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.errors import RecordError
from pytest_captcha_qa.records.jsonl import make_folder
from pytest_captcha_qa.wiring.stores import StorePlace, unusable_store


@dataclass(frozen=True)
class RunSetup:
    """What one process of a run brings along besides its environment.

    `session`: what the processes of this run have in common and no other run has, whatever a CI calls it; `boundary`:
    what tokens must not be shared beyond (state.md); `store`: path of the embedded store or address of the shared one;
    `budget`: most submits of the run, `budget_given` if a person set it; `allow_production`: hosts of the command line;
    `lease`: seconds after which the keys of a crashed process are free; `processes`: how many work on this run here;
    `has_destructive`: whether a probe was asked for that must be alone at the site.
    """

    run_id: str
    session: str
    boundary: str
    records: Path
    store: StorePlace
    budget: int | None = None
    budget_given: bool = False
    allow_production: tuple[str, ...] = ()
    proof_key: str | None = None
    shard: str | None = None
    worker: str | None = None
    lease: float = 30.0
    processes: int = 1
    has_destructive: bool = False


def unusable_places(setup: RunSetup, environment: EnvironmentConfig) -> list[str]:
    """Return what is wrong with the folder of the records and with the store, in sentences."""
    found = []
    try:
        make_folder(setup.records, environment.name)
    except RecordError as error:
        found.append(error.message)
    return found + unusable_store(setup.store)
