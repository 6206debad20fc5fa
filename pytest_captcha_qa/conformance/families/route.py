"""Ways around the check: other methods, other addresses, switches that a client can throw."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pytest_captcha_qa.conformance.judge import Judged
from pytest_captcha_qa.conformance.probe import Family, Probe, around_the_check
from pytest_captcha_qa.conformance.trial import MADE_UP, Trial
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.draft import Draft
from pytest_captcha_qa.model.probing import ProbeVerdict, Severity
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.verify.vendors import VENDORS

_NOT_SERVED = frozenset({400, 401, 403, 404, 405, 406, 410, 415, 422, 501})
# Documentation addresses (RFC 5737): nobody allows them on purpose.
_ADDRESSES = ("192.0.2.10", "192.0.2.77")
# The public SDKs' check while the vendor is down looks at the shape only.
_OFFLINE = {"challenge": "c0ffee" * 6, "validate": "0ff1ce" * 6, "seccode": f"{'0ff1ce' * 6}|jordan"}
_SWITCHES = (
    ("captcha", "off"), ("captcha_type", "none"), ("ignoreCaptcha", "true"), ("skip_captcha", "1"),
    ("captcha_bypass", "1"), ("test", "1"),
)  # fmt: skip
_SWITCH_HEADERS = {"X-Test-Environment": "1", "X-Captcha-Bypass": "1", "X-Skip-Captcha": "true"}


def _not_served(trial: Trial, answer: Answer) -> bool:
    """Return whether a server does not serve this, or only shows the form again or leads back to it.

    A single-page app answers each address that it does not know with the page that all of it starts from.
    """
    shell = trial.form.submit is not None and answer.status == 200 and answer.text.lstrip()[:1] == "<"
    # The page itself, or the address that was asked, written in another way.
    places = {_plain(trial.url), _plain(answer.url)}
    back = answer.location is not None and _plain(answer.location) in places
    return answer.status in _NOT_SERVED or trial.shows_the_form(answer) or shell or back


def _plain(url: Url) -> str:
    return url.path.rstrip("/").lower()


def other_method(trial: Trial) -> Judged:
    """The submit without a token, by other methods; never DELETE."""
    edits: dict[str, Callable[[Draft], Draft]] = {
        "no token by GET": lambda draft: draft.without_token().by("GET"),
        "no token by PUT": lambda draft: draft.without_token().with_csrf_headers().by("PUT"),
        "no token and _method=PUT": lambda draft: draft.without_token().adding(("_method", "PUT")),
        "no token and X-HTTP-Method-Override": lambda draft: (
            draft.without_token().with_csrf_headers().carrying({"X-HTTP-Method-Override": "PUT"})
        ),
    }
    return trial.each(
        partial(trial.post, called, edit, harmless=partial(_not_served, trial)) for called, edit in edits.items()
    )


def other_spelling(trial: Trial) -> Judged:
    """The submit without a token, at its address written in another way, where a crash is not the form's."""
    spelt = {"with another slash": _other_slash, "in capitals": _in_capitals}
    return trial.each(partial(_spelt, trial, how, edit) for how, edit in spelt.items())


def _spelt(trial: Trial, how: str, edit: Callable[[Draft], Draft]) -> Judged:
    judged = trial.post(
        f"no token at the address {how}",
        lambda draft: edit(draft.without_token()),
        harmless=partial(_not_served, trial),
    )
    if judged.verdict is ProbeVerdict.CRASH:
        return judged.saying(f"{judged.reason}, at an address that is not the form's", ProbeVerdict.INCONCLUSIVE)
    return judged


def _other_slash(draft: Draft) -> Draft:
    path = draft.target.path.rstrip("/") if draft.target.path.endswith("/") else f"{draft.target.path}/"
    return draft.at(Url(draft.target.origin, path or "/", draft.target.query))


def _in_capitals(draft: Draft) -> Draft:
    # An escape such as %e4 means the same in capitals.
    return draft.at(Url(draft.target.origin, draft.target.path.upper(), draft.target.query))


def sibling_routes(trial: Trial) -> Judged:
    """The submit without a token, at the other addresses that the team lists."""
    return trial.each(partial(_at_sibling, trial, path) for path in trial.form.probes.siblings)


def flow_routes(trial: Trial) -> Judged:
    """The submit without a token, at the other steps of its flow that the team lists."""
    return trial.each(partial(_at_sibling, trial, path) for path in trial.form.probes.flow)


def _without_siblings(trial: Trial) -> str | None:
    listed = trial.form.probes.siblings
    return None if listed else "no other address that does the same is listed (policy.siblings)"


def _without_flow(trial: Trial) -> str | None:
    return None if trial.form.probes.flow else "no other step of its flow is listed (policy.flow)"


def _at_sibling(trial: Trial, path: str) -> Judged:
    target = trial.url.join(path)
    return trial.post(
        f"no token at {target.path}",
        lambda draft: draft.without_token().at(target),
        harmless=partial(_not_served, trial),
    )


def switched_off(trial: Trial) -> Judged:
    """No token, and all at once what clients are known to switch a check off with."""
    return trial.post(
        "no token, and fields and headers that ask for no captcha",
        lambda draft: draft.without_token().adding(*_SWITCHES).carrying(_SWITCH_HEADERS),
    )


def other_way(trial: Trial) -> Judged:
    """Another method, or another place for the token."""
    return trial.each((partial(other_method, trial), partial(elsewhere, trial), partial(other_spelling, trial)))


def elsewhere(trial: Trial) -> Judged:
    """A made-up token in a header, a cookie and the query, and none in its field."""
    return trial.post("a token in header, cookie and query instead of its field", _moved)


def _moved(draft: Draft) -> Draft:
    names = [name for name in draft.token_fields if name.replace("-", "").replace("_", "").isalnum()]
    query = [(name, MADE_UP) for name in names]
    carried = draft.without_token().asking(*query)
    return carried.carrying({"X-Captcha-Token": MADE_UP}, cookies=dict(query))


def lost_session(trial: Trial) -> Judged:
    """GeeTest v3 without the session of its page, with values of the shape that its offline mode takes."""
    return trial.post("values of GeeTest's offline mode without a session", _offline)


def _without_status(trial: Trial) -> str | None:
    shape = VENDORS[trial.form.type]
    return None if shape and shape.keeps_status else f"{trial.form.type} keeps no status in the session"


def _offline(draft: Draft) -> Draft:
    values = {name: _OFFLINE.get(name.rpartition("_")[2], "") for name in draft.token_fields}
    return draft.without_token().adding(*values.items()).without_session()


def trusted_address(trial: Trial) -> Judged:
    """No token, and a claim to come from somewhere else; two requests."""
    return trial.each(partial(_claiming, trial, address) for address in _ADDRESSES)


def _claiming(trial: Trial, address: str) -> Judged:
    claim = {"X-Forwarded-For": address, "X-Real-IP": address, "Forwarded": f"for={address}"}
    return trial.post(f"no token and the address {address}", lambda draft: draft.without_token().carrying(claim))


PROBES = (
    Probe(
        "M38", Family.ROUTE, "a lost session means offline", Severity.HIGH, ("CWE-636", "CWE-807"),
        "GeeTest v3: no session cookie, and values of the shape that the offline mode takes", "refused", lost_session,
        meaningless=_without_status,
    ),
    Probe(
        "M22", Family.ROUTE, "another method skips the check", Severity.HIGH, ("CWE-807", "WSTG-CONF-06"),
        "no token by GET, by PUT, with a method override, with another slash, in capitals; a token in header, "
        "cookie or query", "405, 404 or the same check", around_the_check(other_way),
    ),
    Probe(
        "M23", Family.ROUTE, "another route lacks the check", Severity.HIGH, ("CWE-288", "WSTG-ATHN-10"),
        "no token at the addresses in policy.siblings", "the same check", around_the_check(sibling_routes),
        meaningless=_without_siblings,
    ),
    Probe(
        "M24", Family.ROUTE, "a step of the flow lacks the check", Severity.HIGH, ("CWE-288", "WSTG-ATHN-10"),
        "no token at the addresses in policy.flow, such as resend, reset, invite", "the same check",
        around_the_check(flow_routes), meaningless=_without_flow,
    ),
    Probe(
        "M25", Family.ROUTE, "a client can switch the check off", Severity.CRITICAL, ("CWE-807", "CWE-602"),
        "no token, and fields and headers that ask for no captcha, all in one submit", "ignored",
        around_the_check(switched_off),
    ),
    Probe(
        "M26", Family.ROUTE, "a claimed address skips the check", Severity.HIGH, ("CWE-290", "CWE-348"),
        "no token, and X-Forwarded-For of the documentation network; two submits", "ignored",
        around_the_check(trusted_address),
    ),
)  # fmt: skip
