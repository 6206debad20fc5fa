from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_captcha_qa.reporting.wording import counted, how_often, one_line, short, shown, some_of


@pytest.mark.parametrize(("count", "said"), [(0, "0 submits"), (1, "1 submit"), (2, "2 submits")])
def test_a_count_takes_the_right_plural(count, said):
    assert counted(count, "submit") == said


@pytest.mark.parametrize(("count", "said"), [(1, "once"), (2, "2 times")])
def test_how_often_is_said_in_words(count, said):
    assert how_often(count) == said


@pytest.mark.parametrize(("names", "said"), [("a", "a"), ("abc", "a, b, c"), ("abcde", "a, b, c and 2 more")])
def test_many_names_are_cut_after_the_third(names, said):
    assert some_of(list(names)) == said


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("форма «заказ» – 99 %  …", "форма «заказ» – 99 %  …"),
        ("one\n  two\r\n\r\nthree\u2028four\x85", "one two three four"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x1b]0;title\x07\x9b2J\x00\x08\x7f", r"\x1b]0;title\x07\x9b2J\x00\x08\x7f"),
        ("user\u202egpj.exe\u200b", r"user\u202egpj.exe\u200b"),
        ("a\tb\xa0c", "a b c"),
        ("half\ud800", r"half\ud800"),
        ("\n", ""),
    ],
)
def test_a_text_becomes_one_inert_line(text, line):
    assert one_line(text) == line


@given(st.text(st.characters()))
def test_whatever_the_text_its_line_prints_and_stays_as_it_is(text):
    line = one_line(text)
    assert line.isprintable()
    assert one_line(line) == line


def test_a_long_name_is_cut_and_no_character_of_it_does_anything() -> None:
    assert shown("a" * 200, 10) == "aaaaaaaaa…"
    assert shown(" \n") == "(no name)"
    assert shown("a\u2028b\u202ec\x1b[0m") == r"a b\u202ec\x1b[0m"
    assert len(short("a" * 200)) == 60
