"""Which other plugins are there."""

from __future__ import annotations

import pytest


def is_loaded(config: pytest.Config, name: str) -> bool:
    """Return whether a plugin is loaded, by its entry point, or by `-p` and then under the name of its module."""
    return any(map(config.pluginmanager.hasplugin, (name, f"pytest_{name}")))
