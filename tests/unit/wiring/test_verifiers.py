from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.verify.endpoint import EndpointVerifier
from pytest_captcha_qa.verify.lookup import LookupVerifier
from pytest_captcha_qa.verify.siteverify import SiteVerifier
from pytest_captcha_qa.wiring.engine import Engine

NewEngine = Callable[..., Engine]


@pytest.mark.parametrize(
    ("slug", "kind"),
    [("by_endpoint", EndpointVerifier), ("by_lookup", LookupVerifier), ("by_vendor", SiteVerifier)],
)
def test_each_form_is_verified_the_way_it_says(engine: NewEngine, slug: str, kind: type) -> None:
    services = engine().services()
    assert type(services.verifier_of(services.forms[slug])) is kind


def test_a_form_that_tells_by_itself_has_no_verifier(engine: NewEngine) -> None:
    services = engine().services()
    with pytest.raises(ConfigError, match="form 'login' is verified by its own submit"):
        services.verifier_of(services.forms["login"])
