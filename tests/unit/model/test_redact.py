from __future__ import annotations

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_captcha_qa.model.redact import MASK, Scrubber, token_prefix
from pytest_captcha_qa.model.token import RevealedText

# A secret that holds the mask itself could be put together by masking.
_secrets = st.text(st.characters(exclude_characters="*", exclude_categories=["Cs"]), max_size=60)


def _scrubber(*secrets: str) -> Scrubber:
    scrubber = Scrubber()
    scrubber.learn(secrets)
    return scrubber


@given(st.text(max_size=3000))
def test_a_prefix_has_at_most_six_characters_and_a_twentieth_of_the_token(text: str) -> None:
    prefix = token_prefix(text)

    assert text.startswith(prefix)
    assert len(prefix) <= 6
    assert len(prefix) <= 0.05 * len(text)


@pytest.mark.parametrize(("length", "shown"), [(0, 0), (19, 0), (20, 1), (119, 5), (120, 6), (2000, 6)])
def test_short_answers_show_nothing(length: int, shown: int) -> None:
    assert len(token_prefix("a" * length)) == shown


def test_the_prefix_of_a_revealed_text_is_a_plain_string() -> None:
    assert token_prefix(RevealedText("ab" * 100)) == "ababab"


@given(secret=_secrets, before=st.text(max_size=20), after=st.text(max_size=20), data=st.data())
@example(secret="a b c d e f g h i j k", before="", after="", data=None)
@example(secret="p@ss!w0rd$#&*(.;'<>", before="password=", after="\n", data=None)
def test_no_sixteen_characters_of_a_secret_survive_wherever_it_was_cut(
    secret: str, before: str, after: str, data: st.DataObject | None
) -> None:
    start = data.draw(st.integers(0, len(secret))) if data else 0
    end = data.draw(st.integers(start, len(secret))) if data else len(secret)

    cleaned = _scrubber(secret).clean(before + secret[start:end] + after)

    for index in range(len(secret) - 15):
        assert secret[index : index + 16] not in cleaned


@given(secret=st.text("abc.-_ ", min_size=8, max_size=30), text=st.text("abc.-_ ", max_size=100))
def test_not_even_eight_characters_of_a_secret_survive(secret: str, text: str) -> None:
    cleaned = _scrubber(secret).clean(text)

    assert all(secret[index : index + 8] not in cleaned for index in range(len(secret) - 7))


@given(st.text(max_size=200), st.lists(st.text("xyz", min_size=4, max_size=30), max_size=3))
def test_a_text_that_shares_nothing_with_a_secret_is_left_alone(text: str, secrets: list[str]) -> None:
    if set(text) & set("xyz"):
        text = text.translate(str.maketrans("xyz", "abc"))

    assert _scrubber(*secrets).clean(text) == text


def test_the_whole_word_around_a_secret_goes() -> None:
    scrubber = _scrubber("abcdefgh" * 4)

    assert scrubber.clean("token=abcdefghabcd; next") == f"{MASK}; next"
    assert scrubber.clean("see XXabcdefghYY here") == f"see {MASK} here"


def test_a_secret_is_masked_everywhere_and_nothing_between() -> None:
    scrubber = _scrubber("0123456789abcdef")

    assert scrubber.clean("'0123456789abcdef' and 'cdef' and '89abcdef'") == f"'{MASK}' and 'cdef' and '{MASK}'"


def test_secrets_of_four_to_seven_characters_are_masked_whole_and_the_longest_first() -> None:
    scrubber = _scrubber("abcd", "abcdef", "xyz")

    assert scrubber.clean("abcdef abcd abc xyz") == f"{MASK} {MASK} abc xyz"


def test_a_scrubber_that_knows_nothing_changes_nothing() -> None:
    assert Scrubber().clean("anything at all") == "anything at all"


def test_a_long_text_of_one_word_is_cleaned() -> None:
    image = base64.b64encode(bytes(range(256)) * 200).decode()
    scrubber = _scrubber("a-secret-of-the-team")

    assert scrubber.clean(image) == image
    assert scrubber.clean(image + "a-secret-of-the-team") == MASK
