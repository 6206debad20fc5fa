"""Under pytest-timeout captcha tests get the time that their solves may take, and other tests keep their limit."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

ENV = "--captcha-env=staging"
# Each test says which limit it runs under.
TELL = """\
import pytest


@pytest.fixture(autouse=True)
def tell(request):
    marker = request.node.get_closest_marker("timeout")
    print(f"{request.node.name}: {marker.args[0] if marker else None}")
"""
TESTS = """\
import pytest

def test_ordinary(): pass

@pytest.mark.captcha
def test_any_form(): pass

@pytest.mark.captcha(form="login")
def test_login(): pass

def test_each(captcha_form_name): pass

@pytest.mark.timeout(5)
@pytest.mark.captcha(form="login")
def test_own(): pass

@pytest.mark.timeout(7)
@pytest.mark.captcha
class TestOwnOfItsClass:
    def test_method(self): pass
"""
SECOND_FORM = """
[forms.signup]
path = "/recaptcha-v2"
type = "recaptcha_v2"
success = { status = 303 }
"""


@pytest.fixture(scope="module")
def project(staging: Callable[..., Any]) -> Any:
    return staging({"conftest.py": TELL, "test_it.py": TESTS}, settings=SECOND_FORM)


PROBED = "def test_probed(captcha_form_name, captcha_probe_family): pass"


def test_probes_get_the_time_that_their_turns_at_the_forms_rate_may_take(staging: Callable[..., Any]) -> None:
    project = staging({"conftest.py": TELL, "test_it.py": PROBED}, settings=SECOND_FORM + 'rate = "5/min"\n')
    found = told(project.run(ENV, "-s", "-q", "--captcha-probes=page"))
    limits = {float(limit) for name, limit in found.items() if "signup" in name}
    assert limits == {300 + 30 + 30 + 60 + 60 + 60 + 80 * 12}


def told(ran: Any) -> dict[str, str]:
    return dict(re.findall(r"^\.?(test_[\w\[\]-]+): (\S+)$", ran.output, re.MULTILINE))


@pytest.mark.parametrize("arguments", [(), ("--timeout=30",), ("-o", "timeout=30")], ids=str)
def test_a_captcha_test_without_its_own_limit_gets_the_one_of_its_forms(project: Any, arguments: tuple[str]) -> None:
    found = told(project.run(ENV, "-s", "-q", *arguments))
    assert float(found["test_login"]) == float(found["test_each[login]"])
    assert float(found["test_each[signup]"]) == float(found["test_any_form"]) == 300 + 30 + 30 + 60 + 60
    assert 60 < float(found["test_login"]) < float(found["test_each[signup]"])
    assert (found["test_own"], found["test_method"], found["test_ordinary"]) == ("5", "7", "None")


@pytest.mark.parametrize(
    ("arguments", "env"),
    [
        (("--timeout=3600",), {}),
        (("--timeout=0",), {}),
        (("-o", "timeout=3600"), {}),
        ((), {"PYTEST_TIMEOUT": "3600"}),
        (("-p", "no:timeout", "-o", "markers=timeout"), {}),
    ],
    ids=["long", "none", "long ini", "long variable", "no plugin"],
)
def test_a_longer_limit_of_the_suite_stays(project: Any, arguments: tuple[str, ...], env: dict[str, str]) -> None:
    found = told(project.run(ENV, "-s", "-q", *arguments, env=env))
    assert {name: limit for name, limit in found.items() if limit not in ("5", "7")} == dict.fromkeys(
        ("test_ordinary", "test_any_form", "test_login", "test_each[login]", "test_each[signup]"), "None"
    )


def test_an_ordinary_test_still_ends_at_the_limit_of_the_suite(staging: Callable[..., Any]) -> None:
    tests = """\
import time

def test_ordinary(): time.sleep(3)

def test_captcha(captcha_attempt):
    time.sleep(1.5)
    assert captcha_attempt("login")
"""
    ran = staging({"test_it.py": tests}).run(ENV, "--timeout=1")
    assert ran.counts == "1 failed, 1 passed", ran.output
    assert "FAILED test_it.py::test_ordinary" in ran.output
