"""The virtual environment that holds the official SDKs: made once, and kept while the list of them stays."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

from platformdirs import user_cache_path

CLIENTS = Path(__file__).with_name("clients")
REQUIREMENTS = CLIENTS / "requirements.txt"
_SECONDS = 240


class Unavailable(Exception):
    """The SDKs cannot be had; the message says why."""


def python_with_sdks() -> Path:
    """Return the interpreter of an environment with the SDKs, made at the first call. Raises Unavailable."""
    base = Path(sys.prefix) if sys.prefix != sys.base_prefix else user_cache_path("captcha-qa")
    folder = base / "sdks" / hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    python = folder / "env" / "bin" / "python"
    with (folder / "lock").open("w") as lock:  # several workers of pytest-xdist may want it at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "installed").exists():
            _run(sys.executable, "-m", "venv", "--clear", str(folder / "env"))
            _run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(REQUIREMENTS))
            (folder / "installed").touch()
    return python


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} {command[2]} took more than {_SECONDS} s") from None
    if done.returncode:
        raise Unavailable(f"{' '.join(command[1:4])} failed: {done.stderr.strip()[-500:]}")
