"""The steps around a submit that a team brings along: before the page is opened, and after the submit was accepted."""

from __future__ import annotations

from collections.abc import Callable

from pytest_captcha_qa.engine.ports import EffectQuestion, GrantSource, OpenedForm
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.forms.looking import look
from pytest_captcha_qa.forms.page import HttpFormDriver
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.form import FormSpec
from pytest_captcha_qa.model.identity import Identity
from pytest_captcha_qa.model.seen import SeenPage
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.transport import HttpClient
from pytest_captcha_qa.verify.effect import EffectLookup
from pytest_captcha_qa.wiring.functions import TeamFunction
from pytest_captcha_qa.wiring.site import CaptchaEnv, HttpSession, Site

NewClient = Callable[[], HttpClient]


class PreparingDriver:
    """Implements FormDriver: takes the team's steps before a form, then opens it with the same HTTP session."""

    def __init__(self, site: Site, new_client: NewClient) -> None:
        """Keep the site, and where the client of each opened form comes from."""
        self._site = site
        self._new_client = new_client

    def open(self, form: FormSpec, url: Url, grants: GrantSource, deadline: Deadline, identity: Identity) -> OpenedForm:
        """Return the opened form, at the page that `prepare` returns or else at `url`.

        Raises:
            CaptchaQAError: why the steps or the form failed; see `TeamFunction` and `HttpFormDriver`.
        """
        client, url = self._prepared(form, url, deadline, identity)
        return HttpFormDriver(lambda: client).open(form, url, grants, deadline)

    def look(self, form: FormSpec, url: Url, grants: GrantSource, deadline: Deadline, identity: Identity) -> SeenPage:
        """Return what the same page shows, whether or not its form can be driven.

        Raises:
            CaptchaQAError: why the steps or the page failed; see `TeamFunction` and `looking.look`.
        """
        client, url = self._prepared(form, url, deadline, identity)
        return look(client, form, url, grants, deadline)

    def _prepared(self, form: FormSpec, url: Url, deadline: Deadline, identity: Identity) -> tuple[HttpClient, Url]:
        client = self._new_client()
        if form.prepare is None:
            return client, url
        prepare = TeamFunction.load(f"forms.{form.slug}.prepare", form.prepare, self._site.environment.folder)
        http = HttpSession(self._site, client, deadline)
        return client, _page(prepare, prepare(http, CaptchaEnv(self._site), identity), http) or url


class Effects:
    """Implements EffectCheck: asks the address or the function that a form's `confirm` names."""

    def __init__(self, site: Site, new_client: NewClient) -> None:
        """Keep the site, and where the clients come from."""
        self._site = site
        self._new_client = new_client

    def lacking(self, question: EffectQuestion, deadline: Deadline) -> str | None:
        """Return in words what is not there yet, None if the effect shows.

        Raises:
            CaptchaQAError: nobody can tell; see `EffectLookup` and `TeamFunction`.
        """
        form, client = question.form, self._new_client()
        if form.confirm is None or form.confirm.function is None:
            return EffectLookup(client, self._site.grants).lacking(question, deadline)
        shows = TeamFunction.load(f"forms.{form.slug}.confirm", form.confirm.function, self._site.environment.folder)
        seen = shows(HttpSession(self._site, client, deadline), CaptchaEnv(self._site), question.identity)
        if isinstance(seen, Answer):
            raise ConfigError(
                f"{shows.key}: {shows.name} returned an answer of the site, which says nothing about the effect; it "
                "returns whether the effect is there, such as http.get(...).status == 200"
            )
        return None if seen else f"{shows.name} does not see it"


def _page(prepare: TeamFunction, returned: object, http: HttpSession) -> Url | None:
    match returned:
        case None:
            return None
        case Answer():
            return returned.location or returned.url
        case str():
            return http.url(returned)
        case _:
            raise ConfigError(
                f"{prepare.key}: {prepare.name} returned {type(returned).__name__}; it returns the page's path or URL, "
                "an answer of the session it was given, or None for the form's own path"
            )
