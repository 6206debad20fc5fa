"""Servers as child processes that end with their parent."""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import Self

from pytest_captcha_qa.errors import ConfigError

_START_TIMEOUT = 20.0
_STOP_TIMEOUT = 5.0
_STDERR_TAIL = 2000


class Child:
    """A server as a child process.

    It ends when stopped, and by itself when the pipe at its stdin closes, so that it never outlives a parent
    that was killed.
    """

    def __init__(self) -> None:
        """Prepare; nothing runs before it is started."""
        self._process: subprocess.Popen[str] | None = None

    def launch(
        self, what: str, command: Sequence[str], *, stdin: int | None = None, env: Mapping[str, str] | None = None
    ) -> str:
        """Start the command and return its first line once it serves.

        `stdin` is the read end of a pipe whose end ends the server, by default a new one. Raises ConfigError with what
        the process said when it does not come up.
        """
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if stdin is None else stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=env,
                text=True,
                # Ctrl-C in the terminal is for the parent, which may need the server to finish its work.
                start_new_session=True,
            )
            line = _first_line(self._process)
            if line:
                return line
            self.stop()
            stderr.seek(0)
            said = stderr.read()[-_STDERR_TAIL:].strip()
        raise ConfigError(f"{what} did not start: {said or 'it said nothing'}")

    def stop(self) -> None:
        """End the server, if it runs, and wait until it has."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.communicate(timeout=_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()

    def __enter__(self) -> Self:
        """Return the child, to be started."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """End the server."""
        self.stop()


def _first_line(process: subprocess.Popen[str]) -> str:
    """Return the line with the addresses, or nothing when the process ended or its time is over."""
    assert process.stdout is not None
    watchdog = threading.Timer(_START_TIMEOUT, process.kill)
    watchdog.start()
    try:
        return process.stdout.readline()
    finally:
        watchdog.cancel()
