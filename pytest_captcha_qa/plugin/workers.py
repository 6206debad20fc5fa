"""What the process that decides tells xdist's workers, and what each tells when it is done."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import pytest

from pytest_captcha_qa.plugin.exits import Exits
from pytest_captcha_qa.plugin.rendezvous import WORKER_INPUT
from pytest_captcha_qa.plugin.session import CaptchaRun


@dataclass(frozen=True)
class Told:
    """What one process says of its tests at the end.

    `deselected`: captcha tests left out; `records`: the name of its record file, so that one that vanishes is missed;
    `budget`: the most submits it knew; `left`: whether a user or a test ended it before its last test.
    """

    deselected: int
    records: str | None
    budget: int
    left: bool

    def tell(self, session: pytest.Session) -> None:
        """Tell it to the process that started this worker."""
        output: dict[str, Any] = session.config.workeroutput  # type: ignore[attr-defined]
        output[WORKER_INPUT] = asdict(self)
        if self.left:  # of any other code xdist knows nothing and breaks over the test that is not over
            output["exitstatus"] = int(pytest.ExitCode.INTERRUPTED)

    def heard_by(self, exits: Exits) -> None:
        """Take it into account in what the run comes to."""
        exits.note_deselected(self.deselected)
        if self.records is not None:
            exits.expect_records(self.records, budget=self.budget)


class WorkerHooks:
    """Registered in the process that decides; called where xdist starts workers."""

    def __init__(self, run: CaptchaRun, exits: Exits) -> None:
        """Keep what the workers are told, and who hears them."""
        self._run = run
        self._exits = exits

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give each worker the names of the run."""
        node.workerinput[WORKER_INPUT] = self._run.for_workers(node.workerinput["workercount"])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Any) -> None:
        """Start the demo's sandbox before the first test is scheduled, if a worker asked for it."""
        if self._run.demo is not None:
            self._run.demo.start_if_asked()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Note which record file a worker that is done has written, and whether it was left by a user or a test."""
        output = getattr(node, "workeroutput", None) or {}
        if WORKER_INPUT in output:
            told = Told(**output[WORKER_INPUT])
            told.heard_by(self._exits)
            if told.left:
                self._exits.note_left(node)
