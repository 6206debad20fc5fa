"""What all submits have in common: the solution's values, the files, and which page is judged after it."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from pathlib import Path

from pytest_captcha_qa.errors import ConfigError, PageError, ScopeDenied
from pytest_captcha_qa.forms.visit import MOST_REDIRECTS, Visit, referrer
from pytest_captcha_qa.forms.widget import Fields
from pytest_captcha_qa.model.answer import Answer, Rule
from pytest_captcha_qa.model.form import FormSpec
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.transport import File

_BECOME_GET = frozenset({301, 302, 303})  # 307 and 308 would post the token once more


def token_values(solution: Solution, fields: Fields) -> dict[str, str]:
    """Return what each response field gets; a solution that has none of the parts goes into all of them."""
    parts = {name: solution.parts[part] for name, part in fields.items() if part in solution.parts}
    return {name: str(value) for name, value in parts.items()} or dict.fromkeys(fields, str(solution.text))


def read_files(form: FormSpec) -> dict[str, File]:
    """Return the configured files by the field that sends each.

    Raises:
        ConfigError: one cannot be read any more; before the run it could.
    """
    return {name: _read(form, name, Path(path)) for name, path in form.files.items()}


def page_that_is_judged(form: FormSpec, page: Url, answer: Answer, visit: Visit) -> Answer:
    """Return the answer to a submit, or what its redirects end at if only that page can meet the success rule.

    Raises:
        PageError: such a redirect leads where it must not.
        TargetUnavailable: the page it leads to does not answer.
    """
    refused = form.refused
    for _ in range(MOST_REDIRECTS):
        refusal = refused is not None and _judges_redirects(refused) and refused.matches(answer)
        if _judges_redirects(form.success) or refusal:
            break
        if answer.status not in _BECOME_GET or answer.location is None:
            break
        answer = _after_redirect(page, answer.location, visit)
    return answer


def origin_headers(method: str, page: Url, target: Url) -> Mapping[str, str]:
    """Return the headers by which a browser tells where a submit comes from."""
    headers = {"Referer": referrer(page, target)}
    return headers if method == "GET" else {**headers, "Origin": str(page.origin)}


def _read(form: FormSpec, name: str, path: Path) -> File:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"forms.{form.slug}.fields.{name}: {path} cannot be read: {error.strerror}") from None
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return File(name, path.name, content, kind)


def _after_redirect(page: Url, target: Url, visit: Visit) -> Answer:
    try:
        return visit.get(target, visit.grants.grant(target)).answer
    except (ScopeDenied, ConfigError) as denied:
        # The form was sent before: an error that says nothing was sent would give its token back.
        raise PageError(
            f"the form on {page.without_query} was sent, and its answer redirects to "
            f"{target.without_query}, which is not followed ({denied.message}); "
            f"a success rule with `location` judges the redirect itself"
        ) from None


def _judges_redirects(rule: Rule) -> bool:
    """Return whether a rule speaks of a redirect itself, not of the page after it."""
    own = rule.location is not None or any(300 <= status < 400 for status in rule.status)
    return own or any(_judges_redirects(part) for part in rule.all)
