"""Tests of a team whose solving service answers garbage."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("path", ["/in.php", "/res.php"])
@pytest.mark.parametrize("kind", ["html200", "empty", "reset"])
def test_the_provider_fails(kind, path, captcha_token, fault):
    fault(provider=[{"kind": kind, "path": path, "count": 1}])
    token = captcha_token("login")
    assert token is None
