"""The parsed page: what browsers see of it, and where it ends."""

from __future__ import annotations

import pytest

from pytest_captcha_qa.forms.markup import parse
from pytest_captcha_qa.forms.outline import Outline
from pytest_captcha_qa.forms.places import options_at
from pytest_captcha_qa.model.url import Url

URL = Url.parse("https://shop.example/signup")


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("<form><p>text</form>", True),
        ("<p>5 < 6 and more", True),
        ("<html><body><form></body></html><!-- cached -->", True),
        ("", True),
        ("<form><p>text", False),
        ("<p>text<div cla", False),
        ("<p>text</di", False),
        ("<p>text<!-- comment", False),
        ("<script>var a = '</form>", False),
        ("<form><!-- </form> -->", False),
    ],
)
def test_a_text_that_ends_in_the_middle_is_noticed(text, complete):
    assert Outline(text).complete is complete


def test_only_the_form_in_whose_middle_the_text_ends_is_cut():
    markup = parse("<form id=a></form><form id=b><p>", URL)

    assert markup.cut_form is markup.by_id("b")


@pytest.mark.parametrize("oddity", ["<![x>", "<a<b c=d>", "<!doctype [", "<body id=x><body id=y>"])
def test_a_text_that_two_parsers_read_differently_still_gives_each_control_its_form(oddity):
    markup = parse(f"{oddity}<form id=f><table><tr><td><input id=i name=a></table></form>", URL)
    control = markup.by_id("i")

    assert control is not None
    assert markup.form_of(control) is markup.by_id("f")


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0;url=/next", "/next"),
        ("0; URL='/next'", "/next"),
        (' 0 ,\n"/next"', "/next"),
        ("1;/next", "/next"),
        ("0.5;url=/next", "/next"),
        (";url=/next", "/next"),
        ("2;url=/next", None),
        ("1800;url=/logout", None),
        ("0", None),
        ("0;url=", None),
        ("soon;url=/next", None),
        ("", None),
    ],
)
def test_only_an_immediate_refresh_leads_elsewhere(content, target):
    quoted = content.replace('"', "&quot;")

    assert parse(f'<meta http-equiv=REFRESH content="{quoted}">', URL).refresh == target


@pytest.mark.parametrize(
    ("html", "base"),
    [
        ("", "https://shop.example/signup"),
        ("<base target=_top>", "https://shop.example/signup"),
        ("<base href=/app/><base href=/other/>", "https://shop.example/app/"),
        ("<base href='//cdn.example/x'>", "https://cdn.example/x"),
    ],
)
def test_the_first_base_with_an_address_counts(html, base):
    assert str(parse(html, URL).base) == base


def test_comment_lines_of_scripts_are_no_code():
    script = "// one\n/* two\nthree */ four()\n<!-- five\nsix('https://seven') // eight"

    assert parse(f"<script>{script}</script>", URL).inline == (" four()\nsix('https://seven') // eight",)


@pytest.mark.parametrize(
    ("script", "literal", "variable"),
    [
        ('{a: \'x\', "b": "y", c-d: `z`}', {"a": "x", "b": "y", "cd": "z"}, set()),
        ("{a: value, b: 'x'}", {"b": "x"}, {"a"}),
        ("{a: {nested: 'n'}, b: 'x'}, {b: 'other'}", {"nested": "n", "b": "x"}, set()),
        ("{a: 'unclosed", {}, set()),
        ("{}", {}, set()),
    ],
)
def test_options_of_a_call_are_literal_or_variable(script, literal, variable):
    assert options_at(script, 0) == (literal, frozenset(variable))
