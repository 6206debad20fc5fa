"""The verifier of a form: who is asked about a token besides the form's own submit."""

from __future__ import annotations

from collections.abc import Callable

from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.engine.ports import Verifier
from pytest_captcha_qa.engine.stop import Stop
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.form import FormSpec, VerifyVia
from pytest_captcha_qa.transport import HttpClient
from pytest_captcha_qa.verify.endpoint import EndpointVerifier
from pytest_captcha_qa.verify.lookup import LookupVerifier
from pytest_captcha_qa.verify.siteverify import SiteVerifier


def verifier_of(
    environment: EnvironmentConfig, form: FormSpec, new_client: Callable[[], HttpClient], stop: Stop
) -> Verifier:
    """Return the verifier that a form's `verify` names; `new_client` makes what asks the team's own backend.

    Raises:
        ConfigError: there is nobody to ask, or the vendor cannot be asked without a secret.
    """
    match form.verify.via:
        case VerifyVia.LOOKUP:
            return LookupVerifier(new_client(), stop)
        case VerifyVia.ENDPOINT:
            return EndpointVerifier(new_client())
        case VerifyVia.SITEVERIFY:
            return _site_verifier(environment, form)
        case VerifyVia.FORM:
            raise ConfigError(f"form {form.slug!r} is verified by its own submit; there is nobody else to ask")


def _site_verifier(environment: EnvironmentConfig, form: FormSpec) -> SiteVerifier:
    references = environment.verify[form.slug]
    if references.secret is None:
        raise ConfigError(f"form {form.slug!r} is verified via siteverify but names no secret_env")
    return SiteVerifier(
        HttpClient(),  # a vendor is no target: nothing of the environment's access goes there
        secret=references.secret.text,
        source=environment.account.source,
        stand_in=references.url.text() if references.url is not None else None,
    )
