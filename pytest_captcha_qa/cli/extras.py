"""What a command needs beyond the base installation."""

from __future__ import annotations

from importlib.util import find_spec

from pytest_captcha_qa.errors import ConfigError

_GATE = ("duckdb", "numpy", "scipy")


def need_gate(command: str) -> None:
    """Make sure that what compares and judges records is installed.

    Raises:
        ConfigError: it is not; the message names the extra.
    """
    missing = [name for name in _GATE if find_spec(name) is None]
    if missing:
        say = f"captcha-qa {command} needs {', '.join(missing)}; install it with"
        raise ConfigError(f"{say}: pip install 'pytest-captcha-qa[gate]'")
