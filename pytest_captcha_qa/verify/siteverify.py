"""Asks the vendor about a token, with the team's own secret; this consumes the token."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import ConfigError, ScopeDenied, TransportError, VerifierError
from pytest_captcha_qa.model.attempt import Verdict, VerifyStatus
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import LOW_SCORE, Challenge, FormSpec
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Url, UrlRefused
from pytest_captcha_qa.scope import TokenSource
from pytest_captcha_qa.transport import ANSWER_LIMIT, HttpClient, Reply, json_body, urlencoded
from pytest_captcha_qa.verify.fields import FIELDS, field_values
from pytest_captcha_qa.verify.vendors import (
    REQUEST_CODES,
    SECRET_CODES,
    VENDORS,
    VendorAnswer,
    VendorCall,
    VendorShape,
)

_MARKED = frozenset({TokenSource.SANDBOX, TokenSource.STANDIN})


class SiteVerifier:
    """Implements Verifier with the vendor's siteverify service, or a stand-in for it."""

    def __init__(
        self,
        client: HttpClient,
        *,
        secret: Callable[[], str],
        source: TokenSource,
        stand_in: str | None = None,
    ) -> None:
        """Keep how to ask.

        `secret` returns the vendor secret when it is needed; `source` tells where the account's tokens come
        from; `stand_in` is the address in `url_env`: of the service, or of a host that plays all vendors.
        """
        self._client = client
        self._secret = secret
        self._source = source
        self._stand_in = stand_in

    def verify(
        self,
        form: FormSpec,
        challenge: Challenge,
        solution: Solution | None,
        context: Mapping[str, str],
        grants: GrantSource,
        deadline: Deadline,
    ) -> Verdict:
        """Return the vendor's verdict, after comparing what the vendor leaves to the site.

        Raises:
            ConfigError: the type has no such service, the secret is wrong, or a marked token would leave.
            ScopeDenied: a token of the sandbox would leave this machine; nothing was sent.
            VerifierError: no documented answer came.
        """
        shape = _shape(challenge.type)
        if solution is None:
            raise ConfigError(f"there is no token of form {form.slug!r} that {shape.vendor} could be asked about")
        reply = self._ask(shape, challenge, solution, deadline)
        answer = _read(shape, reply)
        problems = list(self._problems(answer, shape, form, challenge))
        if not problems:
            return Verdict(VerifyStatus.PASS, f"{self._who(shape)} accepts the token", reply.status)
        codes = (LOW_SCORE,) if problems == list(_low_score(answer, shape, form.min_score)) else answer.codes
        return Verdict(VerifyStatus.FAIL, "; ".join(problems), reply.status, codes)

    def _ask(self, shape: VendorShape, challenge: Challenge, solution: Solution, deadline: Deadline) -> Reply:
        values = field_values(FIELDS[challenge.type] or {}, solution)
        call = shape.request(challenge, values, self._secret() if shape.needs_secret else "")
        endpoint = self._endpoint(shape, call)
        body = urlencoded(call.fields.items()) if call.json is None else json_body(call.json)
        try:
            return self._client.request(
                "POST",
                endpoint,
                deadline=deadline,
                grant=None,  # a vendor is no target
                limit=ANSWER_LIMIT,
                payload=body.having(call.headers),
            )
        except TransportError as error:
            raise VerifierError(f"{shape.vendor} could not be asked about the token: {error.message}") from None

    def _endpoint(self, shape: VendorShape, call: VendorCall) -> Url:
        vendor = Url.parse(shape.endpoint.format(**call.place))
        if self._stand_in is None:
            if self._source in _MARKED:
                raise ConfigError(
                    f"tokens of a {self._source} account are never sent to {shape.vendor}: "
                    f"name the stand-in's address with verify.url_env"
                )
            return vendor
        try:
            given = Url.parse(self._stand_in)
        except UrlRefused as refused:
            raise ConfigError(f"the address that verify.url_env holds is refused: {refused}") from None
        if self._source is TokenSource.SANDBOX and not given.origin.is_loopback:
            raise ScopeDenied(
                f"tokens of the sandbox stay on this machine, and verify.url_env leads to {given.origin}",
                reason="sandbox_not_loopback",
            )
        return Url(given.origin, vendor.path, vendor.query) if given.path == "/" else given

    def _who(self, shape: VendorShape) -> str:
        return shape.vendor if self._stand_in is None else f"the stand-in for {shape.vendor}"

    def _problems(
        self, answer: VendorAnswer, shape: VendorShape, form: FormSpec, challenge: Challenge
    ) -> Iterator[str]:
        """Yield in words why the token does not count."""
        if not answer.passed:
            codes = f" ({', '.join(answer.codes)})" if answer.codes else ""
            yield f"{self._who(shape)} refuses the token{codes}"
            return
        # With official test keys the vendors name their own host and neither action nor score.
        if self._source is not TokenSource.TESTKEYS:
            yield from _other_host(answer, challenge)
            yield from _other_action(answer, shape, form.action or challenge.action)
            yield from _low_score(answer, shape, form.min_score)


def _shape(kind: CaptchaType) -> VendorShape:
    shape = VENDORS[kind]
    if shape is None:
        usable = ", ".join(name for name, entry in VENDORS.items() if entry is not None)
        raise ConfigError(f"{kind} has no vendor that via = 'siteverify' could ask; possible types: {usable}")
    return shape


def _read(shape: VendorShape, reply: Reply) -> VendorAnswer:
    """Return the vendor's answer.

    Raises:
        ConfigError: it refuses the secret.
        VerifierError: it did not judge the token, or did not answer as documented.
    """
    try:
        answer = shape.read(json.loads(reply.body))
    except (ValueError, RecursionError):
        answer = None
    documented = reply.status == 200 or (400 <= reply.status < 500 and answer is not None and not answer.passed)
    if answer is None or not documented:
        raise VerifierError(f"{shape.vendor} did not answer as documented (status {reply.status})")
    if not answer.passed and SECRET_CODES & set(answer.codes):
        raise ConfigError(
            f"{shape.vendor} refuses the secret ({', '.join(answer.codes)}): check what verify.secret_env names"
        )
    if not answer.passed and REQUEST_CODES & set(answer.codes):
        raise VerifierError(f"{shape.vendor} did not judge the token ({', '.join(answer.codes)})")
    return answer


def _other_host(answer: VendorAnswer, challenge: Challenge) -> Iterator[str]:
    host = challenge.page.origin.host.strip("[]")
    if answer.hostname is not None and answer.hostname.lower() != host:
        yield f"the token was solved on {answer.hostname[:100]!a}, the page is on {host}"


def _other_action(answer: VendorAnswer, shape: VendorShape, expected: str | None) -> Iterator[str]:
    if expected is None or answer.action == expected:
        return
    if answer.action is not None:
        yield f"the token is for action {answer.action[:60]!a}, expected is {expected!r}"
    elif shape.binds_action:
        yield f"{shape.vendor} names no action, expected is {expected!r}"


def _low_score(answer: VendorAnswer, shape: VendorShape, least: float | None) -> Iterator[str]:
    if not shape.scored or least is None:
        return
    if answer.score is None:
        yield f"{shape.vendor} gives no score, at least {least:g} is expected"
    elif not answer.score >= least:  # also a NaN
        yield f"the score is {answer.score:g}, at least {least:g} is expected"
