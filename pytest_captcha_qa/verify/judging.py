"""What the team's own backend answered, judged by the rules of `verify`; shared by endpoint and lookup."""

from __future__ import annotations

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.answer import Answer, Rule
from pytest_captcha_qa.model.attempt import Verdict, VerifyStatus
from pytest_captcha_qa.model.form import LOW_SCORE, FormSpec
from pytest_captcha_qa.model.url import Url, UrlRefused

# What Google suggests to start with, for backends whose threshold the configuration does not tell.
_USUAL_THRESHOLD = 0.5

# Answers of what stands before the backend, or of one without such an address: no token was judged.
_NO_JUDGEMENT = frozenset({401, 403, 404, 405, 407, 429})


def address(form: FormSpec, text: str | None, page: Url) -> Url:
    """Return the address in `verify.url`, relative ones below the page.

    Raises:
        ConfigError: it is missing or cannot mean one thing only.
    """
    if not text:
        raise ConfigError(f"forms.{form.slug}.verify needs a url for via = {form.verify.via.value!r}")
    try:
        return page.join(text)
    except (UrlRefused, ValueError) as refused:
        raise ConfigError(f"forms.{form.slug}.verify.url is refused: {refused}") from None


def judge(form: FormSpec, answer: Answer) -> Verdict:
    """Return pass if the success rule is met, fail if it is a refusal, error if the answer is neither."""
    spec, status = form.verify, answer.status
    lacking = spec.success.unmet(answer)
    if not lacking:
        return Verdict(VerifyStatus.PASS, f"the backend confirms the token ({status})", status)
    if _is_refusal(spec.success, spec.refused, answer):
        codes = (LOW_SCORE,) if _tells_a_low_score(form, answer) else ()
        return Verdict(VerifyStatus.FAIL, f"the backend refuses the token ({status})", status, codes)
    return Verdict(
        VerifyStatus.ERROR,
        f"{answer.url.without_query} answers neither a success (it lacks {'; '.join(lacking)}) nor a refusal",
        status,
    )


def _tells_a_low_score(form: FormSpec, answer: Answer) -> bool:
    """Return whether the backend passed on a `score`, as the vendor names it, that is below what the form wants."""
    score = answer.json_value("score")
    least = _USUAL_THRESHOLD if form.min_score is None else form.min_score
    return isinstance(score, int | float) and not isinstance(score, bool) and score < least


def _is_refusal(success: Rule, refused: Rule | None, answer: Answer) -> bool:
    """Return whether a refusal was answered; without a rule for it, success must at least find its values."""
    if refused is not None:
        return refused.matches(answer)
    if answer.status >= 500 or answer.status in _NO_JUDGEMENT:
        return False
    return all(answer.find_json(path)[0] for path in success.json)
