from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_captcha_qa.plugin import fixtures
from pytest_captcha_qa.plugin.markers import FIXTURES, SIGNATURE, MarkerSpec, is_captcha_test, spec_of

NESTED = """\
import pytest
pytestmark = pytest.mark.captcha(types=["turnstile"], subject="module")

@pytest.mark.captcha(form="login", subject="class")
class TestIt:
    @pytest.mark.captcha(tags=("smoke",), subject="function")
    def test_nested(self): pass
"""


def marked(arguments: str) -> str:
    return f"import pytest\n@pytest.mark.captcha({arguments})\ndef test_it(): pass\n"


def test_markers_are_merged_and_the_nearest_wins(collect: Callable[[str], Any]) -> None:
    [item] = collect(NESTED).items
    assert spec_of(item) == MarkerSpec(form="login", types=("turnstile",), tags=("smoke",), subject="function")


def test_a_bare_marker_says_nothing(collect: Callable[[str], Any]) -> None:
    [item] = collect(marked("")).items
    assert spec_of(item) == MarkerSpec()


def test_a_test_about_to_be_parametrised_is_read_like_an_item(collect: Callable[[str], Any]) -> None:
    metafunc = collect(marked("form='login', prefetch=False")).metafuncs["test_it"]
    assert spec_of(metafunc) == MarkerSpec(form="login", prefetch=False)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("'login'", "takes names, not 'login'; write form='login'"),
        ("fomr='login'", "has no argument 'fomr'; did you mean 'form'?"),
        ("zzz=1", "has no argument 'zzz'; it takes form, types, tags, subject, prefetch"),
        ("form=['login']", "takes a text for form, not ['login']"),
        ("subject=7", "takes a text for subject, not 7"),
        ("types='turnstile'", "takes a list for types, not 'turnstile'; write types=['turnstile']"),
        ("tags=[1]", "takes a list of texts for tags"),
        ("prefetch=1", "takes True or False for prefetch, not 1"),
    ],
)
def test_a_wrong_argument_is_refused_with_what_to_write(
    collect: Callable[[str], Any], arguments: str, sentence: str
) -> None:
    [item] = collect(marked(arguments)).items
    with pytest.raises(pytest.UsageError) as refused:
        spec_of(item)
    assert str(refused.value) == f"{item.nodeid}: the marker captcha {sentence}"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def test_it(): pass\n", False),
        ("def test_it(tmp_path): pass\n", False),
        ("def test_it(captcha_token): pass\n", True),
        ("def test_it(captcha_http): pass\n", True),
        (marked(""), True),
        (
            "import pytest\n@pytest.fixture\ndef ours(captcha_form): pass\ndef test_it(ours): pass\n",
            True,
        ),
        ("import unittest\nclass TestIt(unittest.TestCase):\n    def test_it(self): pass\n", False),
        ("'''\n>>> 1\n1\n'''\n", False),
    ],
    ids=["ordinary", "another fixture", "fixture", "http", "marker", "through a fixture", "unittest", "doctest"],
)
def test_marker_and_fixtures_make_a_captcha_test(collect: Callable[..., Any], source: str, expected: bool) -> None:
    [item] = collect(source, "--doctest-modules").items
    assert is_captcha_test(item) is expected


def test_every_fixture_that_touches_the_environment_makes_a_captcha_test() -> None:
    ours = {name for name in vars(fixtures) if name.startswith("captcha_")}
    assert ours - FIXTURES == {"captcha_form_args"}
    assert ours >= FIXTURES


def test_the_signature_names_every_argument() -> None:
    assert all(f"{name}=" in SIGNATURE for name in MarkerSpec._fields)
