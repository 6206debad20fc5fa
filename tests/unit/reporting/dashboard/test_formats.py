from __future__ import annotations

import pytest

from pytest_captcha_qa.reporting.dashboard import formats


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0.00 s"),
        (0.0042, "0.004 s"),
        (0.1234, "0.12 s"),
        (9.87, "9.87 s"),
        (21.44, "21.4 s"),
        (312.7, "313 s"),
        (86_400.0, "86,400 s"),
        (1e300, "1.00e+300 s"),
        (-5.0, "-5.00 s"),
    ],
)
def test_seconds_have_their_unit_and_three_digits(value: float | None, text: str) -> None:
    assert formats.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (1.0, "100 %"), (0.0, "0 %"), (0.9876, "98.8 %"), (0.99996, "99.9+ %"), (1e-5, "<0.1 %")],
)
def test_shares_are_per_cent(value: float | None, text: str) -> None:
    assert formats.percent(value) == text


def test_a_long_name_is_cut_and_no_character_of_it_does_anything() -> None:
    assert formats.shown("a" * 200, 10) == "aaaaaaaaa…"
    assert formats.shown(" \n") == "(no name)"
    assert formats.shown("a\u2028b\u202ec\x1b[0m") == r"a b\u202ec\x1b[0m"


def test_a_moment_is_a_date_and_a_minute() -> None:
    assert formats.moment("2026-09-01T08:07:06Z") == "2026-09-01 08:07"
    assert formats.moment("") == "–"
