"""A stand-in in place of a solving service: marked tokens, at once."""

from __future__ import annotations

from pytest_captcha_qa.engine.ports import PollTimes
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import ScopeDenied
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.provider.standin import StandIn, check_type
from pytest_captcha_qa.scope import ScopeGrant, TokenSource

_AT_ONCE = PollTimes(first=0.0, interval=0.05)


class StandInProvider:
    """Implements Provider over a stand-in: its tokens are there at once, and go to granted targets only."""

    def __init__(self, stand_in: StandIn) -> None:
        """Keep the client."""
        self.stand_in = stand_in

    def __repr__(self) -> str:
        return f"<StandInProvider over {self.stand_in!r}>"

    def polling(self, challenge: Challenge) -> PollTimes:
        """Return that the token is there at once."""
        return _AT_ONCE

    def supports(self, challenge: Challenge) -> None:
        """Return quietly if the type has a vendor.

        Raises:
            ConfigError: the site itself checks answers of this type.
        """
        check_type(challenge)

    def submit(self, challenge: Challenge, grant: ScopeGrant, deadline: Deadline) -> str:
        """Have a token made, and return its id.

        Raises:
            ScopeDenied: the grant does not allow it; nothing was sent.
            ConfigError, ProviderError, KeyRejected: none was made.
        """
        if type(grant) is ScopeGrant and grant.source is not TokenSource.STANDIN:
            raise ScopeDenied(
                f"the grant for {grant.origin} is for {grant.source} tokens, not for those of a stand-in",
                reason="grant_other_source",
            )
        return self.stand_in.issue(challenge, grant, deadline=deadline).id

    def poll(self, challenge: Challenge, task_id: str, deadline: Deadline) -> Solution:
        """Return the token.

        Raises:
            TaskUnknown: it is gone with the stand-in, or with its session.
            ProviderError, KeyRejected: there was no usable answer.
        """
        return self.stand_in.find(task_id, challenge, deadline).solution

    def balance(self, deadline: Deadline) -> None:
        """Return None: there is no account."""

    def threads(self, deadline: Deadline) -> None:
        """Return None: there is nothing to share."""

    def report(self, task_id: str, *, good: bool, deadline: Deadline) -> bool:
        """Return False: nobody takes a report."""
        return False
