"""Which forms a test runs for, which names in markers are refused, and that nothing starts before it must."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_captcha_qa.sandbox.server import DEMO_CONFIG

TESTS = """\
import pytest

def test_ordinary(): pass

def test_every(captcha_form_name, captcha_attempt): pass

@pytest.mark.captcha(form="login")
def test_form(captcha_form_name): pass

@pytest.mark.captcha(types=["turnstile", "geetest_v3"])
def test_types(captcha_form_name): pass

@pytest.mark.captcha(tags={"smoke"})
def test_tags(captcha_form_name): pass

@pytest.mark.captcha(form="login", types=["hcaptcha"])
def test_no_such_form(captcha_form_name): raise AssertionError("must not run")

@pytest.mark.parametrize("captcha_form_name, n", [("signup", 1)])
def test_listed_by_itself(captcha_form_name, n): assert captcha_form_name == "signup"

@pytest.mark.captcha(tags=["smoke"])
class TestNearest:
    @pytest.mark.captcha(form="order")
    def test_merged(self, captcha_form_name): pass
"""
FORMS = tuple(tomllib.loads(DEMO_CONFIG.read_text())["forms"])


@pytest.fixture(scope="module")
def project(new_project: Callable[..., Any]) -> Any:
    return new_project({"test_it.py": TESTS})


@pytest.fixture
def private_temp(project: Any, tmp_path: Path) -> dict[str, str]:
    """Variables that send temporary files, the shared folder of a run among them, to `tmp_path`."""
    return {"TMPDIR": str(tmp_path)}


def test_a_test_that_asks_for_a_form_name_runs_for_every_form_its_markers_leave(project: Any) -> None:
    ran = project.run("--captcha-env=demo", "--co", "-q")
    collected = [line.partition("::")[2] for line in ran.output.splitlines() if "::" in line]
    assert collected == [
        "test_ordinary",
        *(f"test_every[{form}]" for form in FORMS),
        "test_form[login]",
        "test_types[login]",
        "test_types[order]",
        *(f"test_tags[{form}]" for form in FORMS),
        "test_no_such_form",
        "test_listed_by_itself[signup-1]",
        "TestNearest::test_merged[order]",
    ]
    assert ran.code == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--co",), 0),
        (("--fixtures",), 0),
        (("--setup-plan",), 0),
        (("-k", "ordinary"), 0),
        (("-k", "ordinary", "-n", "2"), 0),
        (("-k", "nothing_of_all"), 5),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_nothing_is_started_before_a_captcha_test_runs(
    project: Any, private_temp: dict[str, str], tmp_path: Path, arguments: tuple[str, ...], code: int
) -> None:
    # A sandbox would be started by this interpreter, and ends the run with 4 since its module is not to be had.
    blocker = tmp_path / "blocked" / "sitecustomize.py"
    blocker.parent.mkdir()
    blocker.write_text("import sys\nsys.modules['pytest_captcha_qa.sandbox.server'] = None\n")
    ran = project.run("--captcha-env=demo", *arguments, env=private_temp | {"PYTHONPATH": str(blocker.parent)})

    assert ran.code == code, ran.output
    assert not (project.folder / "reports").exists()
    assert not list(tmp_path.glob("captcha-qa-*")), "the folder that the run's processes share is removed"
    assert "= captcha =" not in ran.output


def test_a_type_without_a_configured_form_is_skipped_with_a_sentence(project: Any) -> None:
    ran = project.run("--captcha-env=demo", "-rs", "-k", "no_such_form or listed")
    assert "no configured form matches this test" in ran.output
    assert ran.counts == f"1 passed, 1 skipped, {2 * len(FORMS) + 5} deselected"
    assert ran.code == 11, "captcha tests were selected and no form was measured"


@pytest.mark.parametrize("how", [(), ("-n", "2"), ("--co",)], ids=["plain", "xdist", "co"])
def test_what_is_misspelt_in_a_marker_ends_4_with_the_nearest_name(
    new_project: Callable[..., Any], how: tuple[str, ...]
) -> None:
    markers = {
        "form": "form='logn'",
        "kind": "types=['turnstil']",
        "tag": "tags=['smok']",
        "argument": "frm='login'",
        "list": "types='turnstile'",
        "position": "'login'",
        "flag": "prefetch='yes'",
    }
    tests = [
        f"@pytest.mark.captcha({arguments})\ndef test_{name}(captcha_form_name): pass\n"
        for name, arguments in markers.items()
    ]
    ran = new_project({"test_it.py": "import pytest\n" + "".join(tests)}).run("--captcha-env=demo", *how)

    assert ran.code == 4, ran.output
    assert "INTERNALERROR" not in ran.output
    said = " ".join(ran.output.split())
    for sentence in [
        "unknown form 'logn' in the marker of test_it.py::test_form (environment 'demo'); did you mean 'login'?",
        "unknown captcha type 'turnstil' in the marker of test_it.py::test_kind (environment 'demo'); did you mean "
        "'turnstile'?",
        "unknown tag 'smok' in the marker of test_it.py::test_tag (environment 'demo'); did you mean 'smoke'?",
        "test_it.py::test_argument: the marker captcha has no argument 'frm'; did you mean 'form'?",
        "the marker captcha takes a list for types, not 'turnstile'; write types=['turnstile']",
        "the marker captcha takes names, not 'login'; write form='login'",
        "the marker captcha takes True or False for prefetch, not 'yes'",
    ]:
        assert sentence in said


def test_a_misspelt_marker_of_a_deselected_test_is_not_this_runs_concern(new_project: Callable[..., Any]) -> None:
    tests = "import pytest\n@pytest.mark.captcha(form='logn')\ndef test_wrong(): pass\ndef test_right(): pass\n"
    assert new_project({"test_it.py": tests}).run("--captcha-env=demo", "-k", "right").code == 0


@pytest.mark.parametrize("mode", ["prepend", "append", "importlib"])
def test_every_import_mode_finds_the_suites(project: Any, mode: str) -> None:
    ran = project.run(
        "--captcha-env=demo", f"--import-mode={mode}", "--co", "-q", "--pyargs", "pytest_captcha_qa.suites"
    )
    assert ran.code == 0, ran.output
    assert f"{5 * len(FORMS)} tests collected" in ran.output
