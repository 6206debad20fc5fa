from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_captcha_qa import transport
from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.wiring import reaching


def test_a_session_cookie_is_learned_as_a_secret_and_a_choice_is_not(
    environment: Callable[..., EnvironmentConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, object] = {}
    monkeypatch.setattr(reaching, "HttpClient", lambda access, **given: told.update(given, access=access))
    learned: list[str] = []

    reaching.client_of(environment(), "run-7", learned.extend)
    told["learn"](["de", "0123456789abcdef"])  # type: ignore[operator]

    assert learned == ["0123456789abcdef"]
    assert told["marks"] == {"X-Captcha-QA-Run": "run-7"}
    assert isinstance(told["access"], transport.HttpAccess)
