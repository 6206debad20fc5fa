"""How the processes of one run find each other's things: a folder, and the sandbox of the demo environment."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_captcha_qa.errors import ConfigError

if TYPE_CHECKING:
    from pytest_captcha_qa.sandbox.server import SandboxAddresses, SandboxProcess

WORKER_INPUT = "captcha_qa"


class Demo:
    """The sandbox of one run: started by the process that decides, found by its workers through a file.

    A worker that has selected captcha tests asks for it before it reports its collection; the process that decides
    looks at each such report, so the sandbox serves before the first test is scheduled, and never without need.
    """

    def __init__(self, folder: Path, *, time_scale: float) -> None:
        self._wanted = folder / "sandbox.wanted"
        self._served = folder / "sandbox.json"
        self._time_scale = time_scale
        self._process: SandboxProcess | None = None

    def ask(self) -> None:
        """Say that this worker will need it."""
        self._wanted.touch()

    def start_if_asked(self) -> None:
        """Start it once a worker has asked."""
        if self._wanted.exists():
            self.addresses(may_start=True)

    def addresses(self, *, may_start: bool) -> SandboxAddresses:
        """Return where it serves.

        Raises:
            ConfigError: it does not start, or nobody has started it.
        """
        from pytest_captcha_qa.sandbox.server import SandboxAddresses

        if self._served.exists():
            return SandboxAddresses(**json.loads(self._served.read_text("utf-8")))
        if not may_start:
            raise ConfigError(
                "the sandbox of the demo environment was not started, since no test of this worker was known to need "
                "it; mark the ones that do with @pytest.mark.captcha"
            )
        return self._start()

    def stop(self) -> None:
        """End it, if this process started it."""
        if self._process is not None:
            self._process.stop()

    def _start(self) -> SandboxAddresses:
        from pytest_captcha_qa.sandbox.server import SandboxProcess

        process = SandboxProcess()
        addresses = process.start(time_scale=self._time_scale)
        self._process = process
        draft = self._served.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(asdict(addresses)), "utf-8")
        draft.replace(self._served)
        return addresses
