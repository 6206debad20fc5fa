"""What captcha tests are about: parametrisation over forms, and the names in their markers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from pytest_captcha_qa.errors import ConfigError, UnknownName
from pytest_captcha_qa.model.form import FormSpec
from pytest_captcha_qa.plugin.markers import MarkerSpec, is_captcha_test, spec_of
from pytest_captcha_qa.plugin.reports import FORMS
from pytest_captcha_qa.plugin.session import CaptchaRun

PROBLEM: pytest.StashKey[str] = pytest.StashKey()


def parametrise(metafunc: pytest.Metafunc, run: CaptchaRun) -> None:
    """Run a test that asks for `captcha_form_name` once for each form its marker leaves, and for each variant."""
    if "captcha_form_name" not in metafunc.fixturenames or _chosen_by_the_test(metafunc):
        return
    try:
        forms = chosen(spec_of(metafunc), run, where=metafunc.definition.nodeid)
    except pytest.UsageError:
        return  # told by `prepare`, which sees all tests at once
    if forms:
        names = [form.name for form in forms]
        metafunc.parametrize("captcha_form_name", names, ids=names, indirect=True)


def _chosen_by_the_test(metafunc: pytest.Metafunc) -> bool:
    """Return whether the test lists its forms itself, with `@pytest.mark.parametrize`."""
    markers = metafunc.definition.iter_markers("parametrize")
    return any("captcha_form_name" in _names(marker) for marker in markers)


def _names(parametrize: pytest.Mark) -> list[str]:
    given = parametrize.args[0] if parametrize.args else parametrize.kwargs.get("argnames", ())
    return [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)


def prepare(items: Sequence[pytest.Item], run: CaptchaRun) -> None:
    """Note of each captcha test which forms it is about, or what is wrong with its marker.

    Raises:
        pytest.UsageError: a marker is wrong. Where xdist collects, the test fails with the same sentence instead, since
            an error there ends the worker and not the run.
    """
    problems: dict[str, None] = {}
    for item in items:
        if not is_captcha_test(item):
            continue
        try:
            item.stash[FORMS] = _forms_of(item, run)
        except pytest.UsageError as error:
            item.stash[PROBLEM] = str(error)
            problems[str(error)] = None
    if problems and run.decides:
        raise pytest.UsageError("\n".join(problems))


def raise_problem(item: pytest.Item) -> None:
    """Fail a test whose marker is wrong.

    Raises:
        ConfigError: what is wrong with it.
    """
    problem = item.stash.get(PROBLEM, None)
    if problem is not None:
        raise ConfigError(problem)


def _forms_of(item: pytest.Item, run: CaptchaRun) -> tuple[str, ...]:
    spec = spec_of(item)
    _check_names(spec, run, item.nodeid)
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    name = str(parameters.get("captcha_form_name", spec.form) or "")
    form = run.environment.targets.get(name)
    return (form.slug if form else name,) if name else ()


def chosen(spec: MarkerSpec, run: CaptchaRun, *, where: str) -> list[FormSpec]:
    """Return the configured forms and variants that a marker leaves, in the order of the configuration.

    Raises:
        pytest.UsageError: it names a form, type or tag that does not exist.
    """
    _check_names(spec, run, where)
    forms: Iterable[FormSpec] = run.environment.targets.values()
    return [form for form in forms if _fits(form, spec)]


def _fits(form: FormSpec, spec: MarkerSpec) -> bool:
    by_name = spec.form is None or spec.form in (form.slug, form.name)
    by_type = not spec.types or form.type in spec.types
    by_tag = not spec.tags or not set(spec.tags).isdisjoint(form.tags)
    return by_name and by_type and by_tag


def _check_names(spec: MarkerSpec, run: CaptchaRun, where: str) -> None:
    from pytest_captcha_qa.model.captcha import CaptchaType

    known = run.environment.targets
    tags = sorted({tag for form in known.values() for tag in form.tags})
    asked: list[tuple[str, Iterable[str], list[str]]] = [
        ("form", [spec.form] if spec.form else [], list(known)),
        ("captcha type", spec.types, [str(kind) for kind in CaptchaType]),
        ("tag", spec.tags, tags),
    ]
    for kind, names, choices in asked:
        for name in names:
            if name not in choices:
                raise pytest.UsageError(_unknown(kind, name, choices, where, run).message)


def _unknown(kind: str, name: str, choices: Iterable[str], where: str, run: CaptchaRun) -> ConfigError:
    place = f"the marker of {where} (environment {run.environment.name!r})"
    return UnknownName.among(kind, name, choices, where=place)
