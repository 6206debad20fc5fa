from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_captcha_qa.plugin.reruns import most_tries


def config(*, plugin: bool = True, force: int | None = None, reruns: int | None = None, ini: str = "") -> Any:
    options = {"force_reruns": force, "reruns": reruns}
    return SimpleNamespace(
        pluginmanager=SimpleNamespace(hasplugin=lambda name: plugin and name == "rerunfailures"),
        getoption=lambda name, default=None: options.get(name, default),
        getini=lambda name: ini,
    )


@pytest.mark.parametrize(
    ("given", "tries"),
    [
        ({}, 1),
        ({"reruns": 2}, 3),
        ({"ini": "4"}, 5),
        ({"reruns": 0, "ini": "4"}, 1),
        ({"force": 1, "reruns": 3}, 2),
        ({"ini": "many"}, 1),
        ({"plugin": False, "reruns": 2}, 1),
    ],
)
def test_the_options_of_rerunfailures_tell_how_often_a_test_may_run(given: dict[str, Any], tries: int) -> None:
    assert most_tries(config(**given)) == tries
