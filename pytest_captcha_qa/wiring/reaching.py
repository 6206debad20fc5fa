"""How a run reaches the site under test: the client that bears its mark, and the grants that each request needs."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.engine.authorising import Grants
from pytest_captcha_qa.engine.events import Emit, silent
from pytest_captcha_qa.engine.ports import Clock
from pytest_captcha_qa.model.redact import Learn, forget
from pytest_captcha_qa.ownership import ProofFetcher, ProofKey
from pytest_captcha_qa.scope import ScopeRules
from pytest_captcha_qa.transport import HttpAccess, HttpClient

_RUN_HEADER = "X-Captcha-QA-Run"
# A shorter cookie is a choice such as a language; learned as a secret it would mask ordinary words.
_SECRET_COOKIE = 16


def client_of(environment: EnvironmentConfig, run_id: str, learn: Learn = forget) -> HttpClient:
    """Return an HTTP client for the environment; `learn` is told the session cookies that its sites set."""

    def learn_cookies(values: Iterable[str]) -> None:
        learn(value for value in values if len(value) >= _SECRET_COOKIE)

    return HttpClient(_access_of(environment), marks={_RUN_HEADER: run_id}, learn=learn_cookies)


def grants_of(
    client: HttpClient, rules: ScopeRules, *, proof_key: str | None, clock: Clock, emit: Emit = silent
) -> Grants:
    """Return who grants requests to the environment, by proofs that the client fetches."""
    key = ProofKey(proof_key) if proof_key else None
    return Grants(rules, ProofFetcher(client, key, rules), clock, emit)


def _access_of(environment: EnvironmentConfig) -> HttpAccess:
    """Return how the environment is reached."""
    http = environment.http
    return HttpAccess(
        headers=http.headers(),
        cookies=http.cookies(),
        basic_auth=http.basic_auth(),
        client_cert_file=str(http.client_cert) if http.client_cert else None,
        ca_file=str(http.ca) if http.ca else None,
        proxy=http.proxy(),
        where=f"env.{environment.name}.http",
    )
