"""Reads from the site whether an accepted submit had its effect: a mailbox, an account, an order."""

from __future__ import annotations

from urllib.parse import quote

from pytest_captcha_qa.engine.ports import EffectQuestion, GrantSource
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import ConfigError, TransportError, VerifierError
from pytest_captcha_qa.model.form import ConfirmSpec
from pytest_captcha_qa.model.identity import fill
from pytest_captcha_qa.model.url import Url, UrlRefused
from pytest_captcha_qa.transport import HttpClient, Payload


class EffectLookup:
    """Implements EffectCheck for an address and a rule on its answer."""

    def __init__(self, client: HttpClient, grants: GrantSource) -> None:
        """Keep the client of the environment, and who grants its requests."""
        self._client = client
        self._grants = grants

    def lacking(self, question: EffectQuestion, deadline: Deadline) -> str | None:
        """Return what the answer lacks, None if the rule is met.

        Raises:
            ConfigError: the address cannot mean one thing only.
            ScopeDenied: it is not authorised; nothing was sent to it.
            VerifierError: no answer came.
        """
        confirm = question.form.confirm
        assert confirm is not None, "only a form with `confirm` is asked about"
        url = _address(confirm, question)
        payload = Payload(headers={"Accept": "application/json, */*;q=0.5"})
        try:
            reply = self._client.request("GET", url, deadline=deadline, grant=self._grants.grant(url), payload=payload)
        except TransportError as error:
            raise VerifierError(
                f"what confirms the effect of form {question.form.slug!r} does not answer: {error.message}"
            ) from None
        lacking = confirm.success.unmet(reply.answer)
        return f"{url.without_query} lacks {'; '.join(lacking)}" if lacking else None


def _address(confirm: ConfirmSpec, question: EffectQuestion) -> Url:
    values = {name: quote(value, safe="") for name, value in question.context.items()}
    try:
        return question.page.join(fill(confirm.url or "", values))
    except (UrlRefused, ValueError) as refused:
        raise ConfigError(f"forms.{question.form.slug}.confirm.url is refused: {refused}") from None
