"""The settings of a command: what holds in the folder it is called in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_captcha_qa.config.settings import Settings


def settings_here(**options: object) -> Settings:
    """Return the settings that hold in the working folder; `options` are what the command line said, by `dest`.

    Raises:
        ConfigError: the file or a value cannot work; the message has a line for each problem, with its place.
    """
    # Its tables take longer to import than a command without them; neither `--help` nor a refusal waits for that.
    from pytest_captcha_qa.config.sources import load, project_root

    here = Path.cwd()
    return load(here, project_root(here), options=options, ini={}, environ=os.environ, prefix="--")
