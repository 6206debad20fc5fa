from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_captcha_qa.reporting.dashboard.model import PoolView
from pytest_captcha_qa.reporting.figures import Pool
from pytest_captcha_qa.reporting.gate.groups import Group
from pytest_captcha_qa.reporting.pools import briefly, made_by, named

POOL = Pool("staging", "default", "turnstile", "captchaai", "live")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "turnstile (captchaai, live)"),
        ({"form": "signup"}, "form 'signup' (turnstile, captchaai, live)"),
        ({"project": "alpha"}, "turnstile (captchaai, live, project alpha)"),
        ({"time_scale": 0.01}, "turnstile (captchaai, live, times scaled to 1 %)"),
        ({"provider": "", "key_mode": ""}, "turnstile"),
        ({"provider": "", "key_mode": "", "form": "signup"}, "form 'signup' (turnstile)"),
        ({"provider": "a\x1b[0m" + 80 * "b"}, rf"turnstile (a\x1b[0m{51 * 'b'}…, live)"),
    ],
)
def test_a_pool_has_one_name_wherever_it_is_told(changes: dict[str, object], text: str) -> None:
    pool = replace(POOL, **changes)  # type: ignore[arg-type]
    assert named(pool) == Group(pool).named == PoolView(key="p0", pool=pool, forms=()).label == text


def test_where_the_rest_stands_beside_it_is_left_out() -> None:
    assert briefly(POOL) == "turnstile"
    assert briefly(replace(POOL, form="signup")) == "form 'signup'"
    assert made_by("standin", "standin") == "standin, standin"
