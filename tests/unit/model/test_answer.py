from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_captcha_qa.model.answer import Answer, Rule
from pytest_captcha_qa.model.url import Url

PAGE = Url.parse("https://shop.example/signup")


def _answer(status: int = 200, *, text: str = "", location: str | None = None) -> Answer:
    return Answer(status, PAGE, PAGE.join(location) if location else None, text=text)


@pytest.mark.parametrize(
    ("rule", "answer", "lacking"),
    [
        (Rule((303,)), _answer(303), []),
        (Rule((301, 303)), _answer(200), ["the status 301 or 303 (was 200)"]),
        (Rule(location="/welcome*"), _answer(303, location="/welcome?id=1"), []),
        (
            Rule(location="/welcome*"),
            _answer(303, location="/signup"),
            ["a redirect to /welcome* (it went to https://shop.example/signup)"],
        ),
        (Rule(location="/welcome*"), _answer(200), ["a redirect to /welcome* (it went nowhere)"]),
        (Rule(location="https://shop.example/*"), _answer(303, location="/welcome"), []),
        (
            Rule(location="https://other.example/*"),
            _answer(303, location="/welcome"),
            ["a redirect to https://other.example/* (it went to https://shop.example/welcome)"],
        ),
        (Rule(text="Welcome"), _answer(text="Welcome, A."), []),
        (Rule(text="Welcome"), _answer(text="welcome"), ["the text 'Welcome'"]),
        (Rule(absent="error"), _answer(text="fine"), []),
        (Rule(absent="error"), _answer(text="an error"), ["absence of the text 'error'"]),
        (Rule(json={"data.ok": True}), _answer(text='{"data": {"ok": true}}'), []),
        (Rule(json={"data.ok": True}), _answer(text='{"data": {"ok": 1}}'), ["JSON data.ok = true"]),
        (Rule(json={"n": 1}), _answer(text='{"n": true}'), ["JSON n = 1"]),
        (Rule(json={"n": 1}), _answer(text='{"n": 1.0}'), []),
        (Rule(json={"errors.0.code": "captcha"}), _answer(text='{"errors": [{"code": "captcha"}]}'), []),
        (Rule(json={"errors.1": "x"}), _answer(text='{"errors": ["x"]}'), ['JSON errors.1 = "x"']),
        (Rule(json={"gone": None}), _answer(text='{"gone": null}'), []),
        (Rule(json={"gone": None}), _answer(text="{}"), ["JSON gone = null"]),
        (Rule(json={"ok": True}), _answer(text="<html>"), ["JSON ok = true"]),
        (Rule(json={"ok": True}), _answer(text="[" * 100_000), ["JSON ok = true"]),
        (Rule(all=(Rule((200,)), Rule(text="a"))), _answer(text="b"), ["the text 'a'"]),
        (
            Rule((303,), text="a", all=(Rule(absent="b"),)),
            _answer(text="b"),
            ["the status 303 (was 200)", "the text 'a'", "absence of the text 'b'"],
        ),
    ],
)
def test_a_rule_names_all_that_an_answer_lacks(rule: Rule, answer: Answer, lacking: list[str]) -> None:
    assert rule.unmet(answer) == lacking
    assert rule.matches(answer) is (lacking == [])


_scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=2)
_documents = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", min_size=1), inner, max_size=3)
)


@given(document=_documents, path=st.lists(st.text("ab01", min_size=1), min_size=1, max_size=3), value=_scalars)
def test_a_json_rule_is_met_exactly_when_the_value_stands_at_its_path(
    document: object, path: list[str], value: object
) -> None:
    answer = _answer(text=json.dumps(document))

    found, held = answer.find_json(".".join(path))
    met = Rule(json={".".join(path): value}).matches(answer)  # type: ignore[dict-item]

    assert met == (found and type(held) is type(value) and held == value)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc")), max_size=5), st.text("abc", max_size=4))
def test_several_rules_are_met_together_exactly_when_each_is(parts: list[tuple[bool, str]], text: str) -> None:
    rules = tuple(Rule(text=letter) if wanted else Rule(absent=letter) for wanted, letter in parts)
    answer = _answer(text=text)

    assert Rule(all=rules).matches(answer) == all(rule.matches(answer) for rule in rules)
    assert len(Rule(all=rules).unmet(answer)) == sum(not rule.matches(answer) for rule in rules)


@given(st.text(max_size=200), st.text(max_size=20))
def test_no_body_and_no_path_makes_a_json_lookup_fail(text: str, path: str) -> None:
    answer = _answer(text=text)
    found, value = answer.find_json(path)

    assert found or value is None
    assert answer.json_value(path, "nothing") == (value if found else "nothing")


def test_an_answers_repr_shows_neither_its_body_nor_a_query() -> None:
    shown = repr(_answer(303, text="secret body", location="/welcome?token=secret"))

    assert "secret" not in shown
