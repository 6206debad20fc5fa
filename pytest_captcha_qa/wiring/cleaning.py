"""Removes from a site what the accepted submits of a run have left there, by functions of the team."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.engine.events import CREATED
from pytest_captcha_qa.engine.ports import SystemClock
from pytest_captcha_qa.errors import CaptchaQAError, PageError
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.record import EventLine
from pytest_captcha_qa.wiring.functions import TeamFunction
from pytest_captcha_qa.wiring.reaching import client_of, grants_of
from pytest_captcha_qa.wiring.site import CaptchaEnv, HttpSession, Site

_ERRORS_FROM = 400
Created = Mapping[str, str]
"""What one submit left: `slug`, `effects`, `identity` and, for forms with a `cleanup`, `email` and `username`."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What became of one thing: `by` the function that was called, None without one; `error` is why it failed."""

    created: Created
    by: str | None = None
    error: CaptchaQAError | None = None


def created_in(events: Iterable[EventLine]) -> list[Created]:
    """Return what the events of a run say was left behind, in their order."""
    made = (event.data for event in events if event.name == CREATED)
    return [MappingProxyType({name: str(value) for name, value in data.items()}) for data in made]


class Cleaner:
    """Calls the `cleanup` functions of one environment for one run."""

    def __init__(
        self,
        environment: EnvironmentConfig,
        run_id: str,
        *,
        proof_key: str | None,
        allow_production: Iterable[str] = (),
    ) -> None:
        """Keep how to reach the site; its requests carry the id of the run that is cleaned up after."""
        self._client = client_of(environment, run_id)
        # Nothing is solved, so there is nothing that a budget could hold back.
        rules = environment.rules(allow_production=allow_production, budgeted=True)
        grants = grants_of(self._client, rules, proof_key=proof_key, clock=SystemClock())
        self._site = Site(environment, grants, run_id, environment.release)

    def clean(self, created: Iterable[Created]) -> Iterator[Cleaned]:
        """Yield what became of each thing; one that fails does not keep the others."""
        for made in created:
            form = self._site.environment.forms.get(made.get("slug", ""))
            name = form.cleanup if form is not None else None
            if name is None:
                yield Cleaned(made)
                continue
            try:
                self._remove(f"forms.{made['slug']}.cleanup", name, made)
            except CaptchaQAError as error:
                yield Cleaned(made, name, error)
            else:
                yield Cleaned(made, name)

    def close(self) -> None:
        """Give back connections."""
        self._client.close()

    def _remove(self, key: str, name: str, made: Created) -> None:
        remove = TeamFunction.load(key, name, self._site.environment.folder)
        said = remove(HttpSession(self._site, self._client.new_session()), CaptchaEnv(self._site), made)
        if said is False or (isinstance(said, Answer) and said.status >= _ERRORS_FROM):
            told = f"an answer with status {said.status}" if isinstance(said, Answer) else "False"
            raise PageError(f"{key}: {name} returned {told}: it was not removed")
