from __future__ import annotations

from pytest_captcha_qa.reporting.dashboard import formats


def test_a_moment_is_a_date_and_a_minute() -> None:
    assert formats.moment("2026-09-01T08:07:06Z") == "2026-09-01 08:07"
    assert formats.moment("") == "–"


def test_a_part_of_a_distribution_has_its_units() -> None:
    assert formats.span(0.0, 0.03) == "0 s to 30 ms"
