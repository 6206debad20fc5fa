"""Reads what the team's own backend has recorded about a submit that was made."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.errors import TransportError, UnknownName, VerifierError
from pytest_captcha_qa.model.attempt import Verdict, VerifyStatus
from pytest_captcha_qa.model.form import Challenge, FormSpec
from pytest_captcha_qa.model.identity import fill, placeholders_in
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.transport import HttpClient, Payload
from pytest_captcha_qa.verify.judging import address, judge

READS = 4
PAUSE = 1.0
"""Seconds between two reads: backends write what was verified a moment after they answer the form."""


class LookupVerifier:
    """Implements Verifier: reads an address until it tells of the token, a few times."""

    def __init__(self, client: HttpClient, stop: Stop) -> None:
        """Keep the client of the environment, and what may end a wait."""
        self._client = client
        self._stop = stop

    def verify(
        self,
        form: FormSpec,
        challenge: Challenge,
        solution: Solution | None,
        context: Mapping[str, str],
        grants: GrantSource,
        deadline: Deadline,
    ) -> Verdict:
        """Return what was recorded, by the rules of `verify`; `context` holds the values of placeholders.

        Raises:
            ConfigError: the address does not fit, or names an unknown placeholder.
            ScopeDenied: the address is not authorised; nothing was sent.
            VerifierError: no answer came.
            Stopped: an end was asked for while waiting.
        """
        url = _address(form, challenge.page, context)
        for reads_left in reversed(range(READS)):
            verdict = self._read(form, url, grants, deadline)
            if _is_final(form, verdict) or not reads_left or deadline.remaining() <= PAUSE:
                break
            self._stop.wait(PAUSE)
        return verdict

    def _read(self, form: FormSpec, url: Url, grants: GrantSource, deadline: Deadline) -> Verdict:
        payload = Payload(headers={"Accept": "application/json, */*;q=0.5"})
        try:
            reply = self._client.request("GET", url, deadline=deadline, grant=grants.grant(url), payload=payload)
        except TransportError as error:
            raise VerifierError(f"the lookup of form {form.slug!r} does not answer: {error.message}") from None
        return judge(form, reply.answer)


def _is_final(form: FormSpec, verdict: Verdict) -> bool:
    """Return whether a later read cannot say more: a success, or a refusal that has a rule of its own."""
    if verdict.status is VerifyStatus.FAIL:
        return form.verify.refused is not None
    return verdict.status is VerifyStatus.PASS


def _address(form: FormSpec, page: Url, context: Mapping[str, str]) -> Url:
    template = form.verify.url or ""
    for name in placeholders_in(template):
        if name not in context:
            raise UnknownName.among("placeholder", name, context, where=f"forms.{form.slug}.verify.url")
    return address(form, fill(template, {name: quote(value, safe="") for name, value in context.items()}), page)
