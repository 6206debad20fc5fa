"""What becomes of captcha tests without an environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_captcha_qa.plugin.markers import is_captcha_test

WITHOUT_ENVIRONMENT = "no captcha environment was chosen; pass --captcha-env NAME (`demo` is built in)"
_REFUSED = "captcha_qa_refused"


def skip_all(items: Sequence[pytest.Item]) -> None:
    """Skip every captcha test with the reason."""
    for item in items:
        if is_captcha_test(item):
            item.add_marker(pytest.mark.skip(reason=WITHOUT_ENVIRONMENT), append=False)


def refuse_all(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse to run anything: a captcha test among it has no environment.

    Raises:
        pytest.UsageError: always, but in an xdist worker. There it would look like a crash, so the worker runs nothing
            and leaves the sentence to the process that started it.
    """
    first = next(item for item in items if is_captcha_test(item))
    sentence = f"--captcha-required: {first.nodeid} needs an environment; pass --captcha-env NAME"
    if not hasattr(config, "workeroutput"):
        raise pytest.UsageError(sentence)
    config.workeroutput[_REFUSED] = sentence
    items.clear()


def raise_refusal(node: Any) -> None:
    """End the run if the xdist worker that is done has refused its tests.

    Raises:
        pytest.UsageError: it has.
    """
    sentence = (getattr(node, "workeroutput", None) or {}).get(_REFUSED)
    if sentence is not None:
        raise pytest.UsageError(sentence)
