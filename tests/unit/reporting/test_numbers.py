from __future__ import annotations

import json
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from pytest_captcha_qa.reporting.dashboard import charts
from pytest_captcha_qa.reporting.numbers import chance, percent, plain, seconds, span

SECONDS = [
    (None, "–"),
    (0.0, "0 s"),
    (0.00004, "<0.1 ms"),
    (0.0004, "0.4 ms"),
    (0.0042, "4.2 ms"),
    (0.03, "30 ms"),
    (0.1234, "123 ms"),
    (0.95, "950 ms"),
    (0.9994, "999 ms"),
    (0.9996, "1 s"),
    (1.0, "1 s"),
    (9.87, "9.87 s"),
    (9.99, "9.99 s"),
    (9.996, "10 s"),
    (21.44, "21.4 s"),
    (59.9, "59.9 s"),
    (312.7, "313 s"),
    (999.6, "1,000 s"),
    (3600.0, "3,600 s"),
    (86_400.0, "86,400 s"),
    (1e300, "1.00e+300 s"),
    (-5.0, "-5 s"),
]
SHARES = [
    (None, "–"),
    (0.0, "0 %"),
    (1e-5, "<0.01 %"),
    (0.0004, "0.04 %"),
    (0.001, "0.1 %"),
    (0.0123, "1.2 %"),
    (0.5, "50 %"),
    (2 / 3, "66.7 %"),
    (0.9876, "98.8 %"),
    (0.9996, "99.96 %"),
    (0.99996, ">99.99 %"),
    (1.0, "100 %"),
    (1.5, "150 %"),
]


@pytest.mark.parametrize(("value", "text"), SECONDS)
def test_a_time_has_three_digits_and_is_nothing_only_if_it_is_zero(value: float | None, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(("value", "text"), SHARES)
def test_a_share_is_all_or_nothing_only_if_it_is_exactly_that(value: float | None, text: str) -> None:
    assert percent(value) == text


@pytest.mark.skipif(shutil.which("node") is None, reason="no node to run the page's script")
def test_the_script_of_the_page_writes_numbers_in_the_same_way() -> None:
    script = Path(charts.__file__).with_name("page.js").read_text(encoding="utf-8")
    functions = script[script.index("function seconds(") : script.index("const cells")]
    asked = json.dumps([[value for value, _ in table] for table in (SECONDS, SHARES)])
    told = f"const [times, shares] = {asked}; console.log(JSON.stringify([times.map(seconds), shares.map(percent)]))"
    said = subprocess.run(["node", "-e", functions + told], capture_output=True, check=True, text=True, timeout=20)
    assert json.loads(said.stdout) == [[text for _, text in table] for table in (SECONDS, SHARES)]


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (timedelta(minutes=5), "5 min"),
        (timedelta(hours=1), "1 h"),
        (timedelta(hours=30), "30 h"),
        (timedelta(days=2), "2 days"),
        (timedelta(days=3, hours=12), "3.5 days"),
    ],
)
def test_how_long_ago_is_told_in_the_unit_that_fits(time: timedelta, text: str) -> None:
    assert span(time) == text


@pytest.mark.parametrize(
    ("p_value", "text"), [(0.25, "p = 0.25"), (0.00123, "p = 0.0012"), (1e-4, "p = 0.0001"), (0.0, "p < 0.0001")]
)
def test_a_chance_that_is_next_to_none_is_told_as_that(p_value: float, text: str) -> None:
    assert chance(p_value) == text


@pytest.mark.parametrize(
    ("text", "told"), [("12.50", "12.5"), ("3.0", "3"), ("100", "100"), ("+10", "+10"), ("-0.0", "0"), ("+0", "0")]
)
def test_zeros_that_say_nothing_are_left_out(text: str, told: str) -> None:
    assert plain(text) == told
