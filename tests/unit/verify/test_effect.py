"""What is asked about the effect of a submit, and what its answer lacks."""

from __future__ import annotations

import pytest

from pytest_captcha_qa.engine.ports import EffectQuestion
from pytest_captcha_qa.errors import ConfigError, ScopeDenied, TransportError, VerifierError
from pytest_captcha_qa.model.answer import Rule
from pytest_captcha_qa.model.form import ConfirmSpec
from pytest_captcha_qa.model.identity import Identity
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.testing import form
from pytest_captcha_qa.verify.effect import EffectLookup

CAME = Rule(json={"mails.0.subject": "Welcome"})
PAGE = Url.parse("https://shop.example/signup")


@pytest.fixture
def lacking(client, grants, deadline):
    def ask(url="/mailbox?to={identity.email}", rule=CAME):
        spec = form(confirm=ConfirmSpec(url=url, success=rule))
        question = EffectQuestion(spec, PAGE, Identity.make("run"), {"identity.email": "a+b@example.com"})
        return EffectLookup(client, grants).lacking(question, deadline)

    return ask


def test_names_are_filled_in_and_percent_encoded(client, lacking):
    client.will({"mails": [{"subject": "Welcome"}]})

    assert lacking() is None
    method, url, grant, _ = client.asked[0]
    assert (method, url) == ("GET", "https://shop.example/mailbox?to=a%2Bb%40example.com")
    assert grant is not None


def test_what_is_not_there_yet_is_told_without_the_query(client, lacking):
    client.will({"mails": []})

    assert lacking() == 'https://shop.example/mailbox lacks JSON mails.0.subject = "Welcome"'


def test_no_answer_is_no_verdict(client, lacking):
    client.answers.append(TransportError("GET https://shop.example/mailbox: no answer", kind="timeout"))

    with pytest.raises(VerifierError, match="what confirms the effect of form 'signup' does not answer"):
        lacking()


@pytest.mark.parametrize(
    ("url", "error"), [("https://elsewhere.example/mailbox", ScopeDenied), ("//user@shop.example/", ConfigError)]
)
def test_an_address_that_is_not_the_teams_is_not_asked(client, lacking, url, error):
    with pytest.raises(error):
        lacking(url)
    assert client.asked == []
