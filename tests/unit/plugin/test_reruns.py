from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_captcha_qa.plugin.reruns import most_tries


def item(
    *,
    plugin: str = "rerunfailures",
    force: int | None = None,
    reruns: int | None = None,
    mode: str | None = None,
    ini: str = "",
    mark: pytest.MarkDecorator | None = None,
) -> Any:
    options = {"force_reruns": force, "reruns": reruns, "reruns_mode": mode}
    config = SimpleNamespace(
        pluginmanager=SimpleNamespace(hasplugin=lambda name: name == plugin),
        getoption=lambda name, default=None: options.get(name, default),
        getini=lambda name: ini,
    )
    return SimpleNamespace(config=config, get_closest_marker=lambda name: mark.mark if mark is not None else None)


@pytest.mark.parametrize(
    ("given", "tries"),
    [
        ({}, 1),
        ({"reruns": 2}, 3),
        ({"ini": "4"}, 5),
        ({"reruns": 0, "ini": "4"}, 1),
        ({"force": 1, "reruns": 3}, 2),
        ({"ini": "many"}, 1),
        ({"plugin": "", "reruns": 2}, 1),
        ({"plugin": "pytest_rerunfailures", "reruns": 2}, 3),
        ({"mark": pytest.mark.flaky(reruns=3), "reruns": 1}, 4),
        ({"mark": pytest.mark.flaky(2)}, 3),
        ({"mark": pytest.mark.flaky}, 2),
        ({"mark": pytest.mark.flaky(reruns=3), "force": 1}, 2),
        ({"mark": pytest.mark.flaky(reruns=3), "reruns": 2, "mode": "append"}, 6),
        ({"mark": pytest.mark.flaky(reruns=3), "plugin": ""}, 1),
    ],
)
def test_the_options_and_the_marker_of_rerunfailures_tell_how_often_a_test_may_run(
    given: dict[str, Any], tries: int
) -> None:
    assert most_tries(item(**given)) == tries
