"""The same submit, written in another way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pytest_captcha_qa.conformance.judge import Judged
from pytest_captcha_qa.conformance.probe import Family, Keys, Probe, around_the_check
from pytest_captcha_qa.conformance.trial import MADE_UP, Trial
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.draft import Draft, Wire
from pytest_captcha_qa.model.form import Encoding
from pytest_captcha_qa.model.probing import ProbeVerdict, Severity

_UNREADABLE = frozenset({400, 404, 405, 406, 411, 413, 415, 422})
# Beside these: who cannot read the fields misses the form's CSRF value, too.
_NOT_TAKEN = _UNREADABLE | {401, 403}
_VALUES = {"a list": [MADE_UP], "an object": {}, "a number": 1, "the value true": True}


def _unreadable(answer: Answer) -> bool:
    """Return whether a server says that it cannot read this, or does not serve it."""
    return answer.status in _UNREADABLE


def _not_taken(trial: Trial, answer: Answer) -> bool:
    """Return whether a server does not take a body of this type: it says so, or finds nothing and shows the form."""
    return answer.status in _NOT_TAKEN or trial.shows_the_form(answer)


def _in_list_fields(draft: Draft) -> Draft:
    return draft.without_token().adding(*((f"{name}[]", MADE_UP) for name in draft.token_fields))


def _in_object_fields(draft: Draft) -> Draft:
    return draft.without_token().adding(*((f"{name}[a]", MADE_UP) for name in draft.token_fields))


def _holding(value: object, draft: Draft) -> Draft:
    return draft.with_token(value)


def _is_json(trial: Trial) -> bool:
    return trial.form.submit is not None and trial.form.submit.encoding is Encoding.JSON


def _names_once(trial: Trial) -> str | None:
    return "a JSON body has each name once" if _is_json(trial) else None


def wrong_type(trial: Trial) -> Judged:
    """Lists, objects and numbers in the token's place, as the form's own encoding can carry them."""
    edits: dict[str, Callable[[Draft], Draft]] = {
        "the token field as a list": _in_list_fields,
        "the token field as an object": _in_object_fields,
    }
    if _is_json(trial):
        edits = {f"{called} as the token": partial(_holding, value) for called, value in _VALUES.items()}
    return trial.each(partial(trial.post, called, edit, harmless=_unreadable) for called, edit in edits.items())


def twice(trial: Trial) -> Judged:
    """A made-up and a good token under one name, in both orders."""
    token = trial.fresh()
    bad_first = trial.post("a made-up token before a good one", _bad_first, token=token, harmless=_unreadable)
    if not bad_first.accepted:
        # One of the two orders passes in every framework (reference 3.2); it was the other one, or none.
        return bad_first
    bad_last = trial.post("a made-up token after a good one", _bad_last, token=trial.fresh(), harmless=_unreadable)
    if bad_last.accepted:
        return bad_last.saying("a made-up token beside a good one was ignored in both orders")
    reason = f"of two tokens the last one counts: {bad_last.reason}"
    return Judged(ProbeVerdict.SAFE, reason, bad_first.exchange, bad_first.http_status)


def _bad_first(draft: Draft) -> Draft:
    return draft.before(*((name, MADE_UP) for name in draft.token_fields))


def _bad_last(draft: Draft) -> Draft:
    return draft.adding(*((name, MADE_UP) for name in draft.token_fields))


def other_encoding(trial: Trial) -> Judged:
    """The same fields without a token, as the encodings that the form does not use."""
    own = Wire(trial.form.submit.encoding) if trial.form.submit is not None else Wire.FORM
    others = [wire for wire in (Wire.JSON, Wire.MULTIPART, Wire.TEXT, Wire.FORM) if wire is not own]
    return trial.each(partial(_written_as, trial, wire) for wire in others)


def _written_as(trial: Trial, wire: Wire) -> Judged:
    return trial.post(
        f"no token in a body of type {wire}",
        lambda draft: draft.without_token().with_csrf_headers().sent_as(wire),
        harmless=partial(_not_taken, trial),
    )


PROBES = (
    Probe(
        "M18", Family.SHAPE, "a token of a wrong type passes or crashes", Severity.MEDIUM, ("CWE-20", "WSTG-INPV-04"),
        "the token as a list, an object, a number", "4xx, no 500, no pass", wrong_type, keys=Keys.JUDGED,
        implies=("M03",),
    ),
    Probe(
        "M19", Family.SHAPE, "a bad token beside a good one is ignored", Severity.LOW, ("CWE-235", "WSTG-INPV-04"),
        "a made-up and a good token under one name, in both orders", "one fixed rule: not both orders pass",
        twice, keys=Keys.JUDGED, accepts=2, meaningless=_names_once,
    ),
    Probe(
        "M21", Family.SHAPE, "another content type skips the check", Severity.HIGH, ("CWE-807",),
        "the same fields without a token as JSON, multipart, text/plain", "the same verdict",
        around_the_check(other_encoding),
    ),
)  # fmt: skip
