"""The team's key in CAPTCHA_QA_PROOF_KEY: where it was found, and where a new one is kept."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from pytest_captcha_qa.config.settings import Settings
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.ownership import KEY_VARIABLE, ProofKey, make_key

_GIT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class TeamKey:
    """The key and where it stands: in a `.env` file, or, with None, in a variable of the process."""

    secret: str = field(repr=False)
    dotenv: Path | None
    new: bool = False

    @property
    def key(self) -> ProofKey:
        """The key to sign with.

        Raises:
            ConfigError: it is no key.
        """
        return ProofKey(self.secret)

    def store(self) -> None:
        """Append a new key to its `.env`, readable by its owner only.

        Raises:
            ConfigError: git would commit it, or it cannot be written.
        """
        if self.new and self.dotenv is not None:
            _refuse_committable(self.dotenv)
            _append(self.dotenv, self.secret)


def team_key(settings: Settings) -> TeamKey:
    """Return the key the team has, else a new one that is not stored yet.

    Raises:
        ConfigError: an empty variable would hide the key in `.env` from every run.
    """
    variables = settings.variables
    dotenv = (variables.folder / ".env").resolve()
    if variables.environ.get(KEY_VARIABLE) == "":
        raise ConfigError(f"{KEY_VARIABLE} is set to nothing in the environment; set it to the key or unset it")
    found = variables.get(KEY_VARIABLE)
    if found is None:
        return TeamKey(make_key(), dotenv, new=True)
    return TeamKey(found, None if KEY_VARIABLE in variables.environ else dotenv)


def _append(dotenv: Path, secret: str) -> None:
    try:
        before = dotenv.read_bytes() if dotenv.exists() else b""
        line = b"" if before.endswith(b"\n") or not before else b"\n"
        descriptor = os.open(dotenv, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "ab") as stream:
            # An older file may be readable by others; from now on it holds the key.
            os.fchmod(stream.fileno(), 0o600)
            stream.write(line + f"{KEY_VARIABLE}={secret}\n".encode())
    except OSError as error:
        raise ConfigError(f"the new key could not be stored in {dotenv}: {error.strerror}") from None


def _refuse_committable(dotenv: Path) -> None:
    folder = dotenv.parent
    if not any((above / ".git").exists() for above in (folder, *folder.parents)):
        return
    command = ["git", "-C", str(folder), "check-ignore", "--quiet", "--", dotenv.name]
    try:
        ignored = subprocess.run(command, capture_output=True, check=False, timeout=_GIT_SECONDS).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        ignored = False
    if not ignored:
        raise ConfigError(
            f"the new key would be stored in {dotenv}, which git does not ignore or already tracks: "
            f"add .env to .gitignore, or set {KEY_VARIABLE} yourself; nothing was written"
        )
