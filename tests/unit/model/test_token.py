from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

from pytest_captcha_qa.errors import SpentElsewhere
from pytest_captcha_qa.model.token import TOKEN, RevealedText, Solution, Source, Token

TEXT = "03AGdBq2" + "x" * 400
SOLUTION = Solution({TOKEN: TEXT}, task_id="7", wait=21.5)
GEETEST = Solution({"challenge": "c" * 40, "validate": "v" * 40, "seccode": "s" * 40})


def _token(solution: Solution = SOLUTION, spend: Callable[[Token, float | None], Solution] | None = None) -> Token:
    return Token(
        solution,
        form="signup",
        source=Source.SOLVED,
        generation=1,
        age=lambda: 12.5,
        spend=spend or (lambda token, within: solution),
    )


def test_a_token_tells_its_story_without_being_spent() -> None:
    token = _token()

    assert (token.age, token.wait, token.task_id, token.source) == (12.5, 21.5, "7", Source.SOLVED)
    assert not token.spent


def test_revealing_a_token_spends_it_first_and_once() -> None:
    calls: list[float | None] = []

    def spend(token: Token, within: float | None) -> Solution:
        calls.append(within)
        return SOLUTION

    token = _token(spend=spend)

    assert token.reveal() == token.reveal() == TEXT
    assert (calls, token.spent) == ([None], True)


def test_the_seconds_a_renewal_may_take_are_handed_down() -> None:
    calls: list[float | None] = []

    def spend(token: Token, within: float | None) -> Solution:
        calls.append(within)
        return SOLUTION

    _token(spend=spend).take(within=42)

    assert calls == [42]


def test_a_token_that_could_not_be_spent_is_unspent_and_not_revealed() -> None:
    def lost(token: Token, within: float | None) -> Solution:
        raise SpentElsewhere("taken")

    token = _token(spend=lost)
    with pytest.raises(SpentElsewhere):
        token.reveal()

    assert not token.spent


def test_what_is_revealed_is_what_the_store_gave_and_not_what_was_held() -> None:
    newer = Solution({TOKEN: "newer" * 20})

    assert _token(spend=lambda token, within: newer).reveal() == "newer" * 20


def test_a_token_of_several_parts_is_revealed_by_name() -> None:
    parts = _token(GEETEST).reveal_parts()

    assert parts == dict(GEETEST.parts)
    assert _token(GEETEST).reveal() == "c" * 40


def test_a_token_that_was_given_back_is_spent_anew() -> None:
    calls: list[str] = []

    def spend(token: Token, within: float | None) -> Solution:
        calls.append("spend")
        return SOLUTION

    token = _token(spend=spend)
    token.take()
    token.unspend()
    assert not token.spent

    token.take()
    assert calls == ["spend", "spend"]


def test_only_a_spent_token_can_be_replayed() -> None:
    token = _token()
    with pytest.raises(ValueError, match="this token is unspent"):
        token.replayed()

    token.take()
    assert token.replayed() is SOLUTION


def test_a_renewed_token_tells_its_own_story() -> None:
    token = _token()
    newer = Solution({TOKEN: "n" * 100}, task_id="8", wait=3.0)

    token.renew(newer, source=Source.REUSED, generation=2, age=lambda: 1.0)

    told = (token.task_id, token.wait, token.source, token.generation, token.age)
    assert told == ("8", 3.0, Source.REUSED, 2, 1.0)


@pytest.mark.parametrize("show", [repr, str, "{}".format, "{!r}".format])
@pytest.mark.parametrize("thing", [_token(), SOLUTION, _token(GEETEST), GEETEST], ids=repr)
def test_nothing_of_a_token_but_its_first_characters_can_be_printed(
    thing: object, show: Callable[[object], str]
) -> None:
    for text in (TEXT, *GEETEST.parts.values()):
        assert text[:7] not in show(thing)


def test_a_revealed_text_is_a_string_whose_repr_is_masked() -> None:
    text = RevealedText(TEXT)

    assert (f"{text}", str(text), text + "") == (TEXT, TEXT, TEXT)
    assert repr(text) == f"'{TEXT[:6]}…'"
    assert TEXT[:7] not in repr({"token": text})


@pytest.mark.parametrize("send", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_token_stays_in_the_process_that_obtained_it(send: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match="stays in the process"):
        send(_token())


def test_a_scrubber_learns_all_parts_without_spending() -> None:
    token = _token(GEETEST)

    assert set(token.secrets()) == set(GEETEST.parts.values())
    assert not token.spent


def test_the_public_parts_of_a_solution_are_no_secrets() -> None:
    solution = Solution({"lot_number": "lot", "pass_token": "pass", "gen_time": "1795974537", "captcha_id": "id"})

    assert solution.secrets == ("lot", "pass")
    assert solution.text == "lot"
    assert Solution.of_text("XXXX.DUMMY.TOKEN.XXXX").secrets == ()


def test_a_solution_is_timed_without_losing_what_came_with_it() -> None:
    solution = Solution({TOKEN: TEXT}, user_agent="Agent", cookies={"a": "b"})

    timed = solution.timed(task_id="9", wait=2.0)

    assert (timed.task_id, timed.wait, timed.user_agent, dict(timed.cookies)) == ("9", 2.0, "Agent", {"a": "b"})
    assert (timed.text, solution.task_id) == (TEXT, None)


def test_a_solution_without_parts_has_no_text() -> None:
    assert Solution({}).text == ""
    assert Solution.of_text("made up").parts == {TOKEN: "made up"}
