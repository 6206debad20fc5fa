"""Asks an endpoint of the team's own backend about a token, which consumes it; the form is not submitted."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import ConfigError, TransportError, VerifierError
from pytest_captcha_qa.model.attempt import Verdict
from pytest_captcha_qa.model.form import Challenge, FormSpec
from pytest_captcha_qa.model.token import TOKEN, Solution
from pytest_captcha_qa.transport import HttpClient, Payload, urlencoded
from pytest_captcha_qa.verify.fields import FIELDS, field_values
from pytest_captcha_qa.verify.judging import address, judge


class EndpointVerifier:
    """Implements Verifier: posts the token fields, named as the form would name them."""

    def __init__(self, client: HttpClient) -> None:
        """Keep the client of the environment."""
        self._client = client

    def verify(
        self,
        form: FormSpec,
        challenge: Challenge,
        solution: Solution | None,
        context: Mapping[str, str],
        grants: GrantSource,
        deadline: Deadline,
    ) -> Verdict:
        """Return what the endpoint says of the token, by the rules of `verify`.

        Raises:
            ConfigError: the address or the type does not fit.
            ScopeDenied: the address is not authorised; nothing was sent.
            VerifierError: no answer came.
        """
        url = address(form, form.verify.url, challenge.page)
        payload = _payload(form, challenge, solution)
        grant = grants.grant(url)
        try:
            reply = self._client.request("POST", url, deadline=deadline, grant=grant, payload=payload)
        except TransportError as error:
            raise VerifierError(f"the endpoint of form {form.slug!r} does not answer: {error.message}") from None
        return judge(form, reply.answer)


def _payload(form: FormSpec, challenge: Challenge, solution: Solution | None) -> Payload:
    names = {form.token_field: TOKEN} if form.token_field else FIELDS[challenge.type]
    if names is None:
        raise ConfigError(
            f"nothing tells in which field {form.verify.url} takes the answer to the {challenge.type}; name it with "
            f"forms.{form.slug}.token_field"
        )
    fields = field_values(names, solution) if solution is not None else {}
    headers = {"Accept": "application/json, */*;q=0.5", "Origin": str(challenge.page.origin)}
    headers["Referer"] = str(challenge.page)
    payload = urlencoded(fields.items()).having(headers)
    if solution is None:
        return payload
    return payload.having(cookies=solution.cookies, user_agent=solution.user_agent)
