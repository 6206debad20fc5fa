"""What a solving service is told of its tokens after their verification, where the account says that it shall be."""

from __future__ import annotations

from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.services import Services
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import BalanceExhausted, KeyRejected, ProviderError

_SECONDS = 5.0  # the attempt waits for the answer, which changes nothing for it


def tell_provider(services: Services, task_id: str | None, *, good: bool) -> None:
    """Report the token of a task as good or bad; whatever becomes of the report is an event and never an error."""
    if not services.reports or task_id is None:
        return
    data: dict[str, events.EventValue] = {"task_id": task_id, "good": good}
    deadline = Deadline(_SECONDS, what="a report to the provider", now=services.clock.monotonic)
    try:
        if not services.provider.report(task_id, good=good, deadline=deadline):
            return
    except (ProviderError, KeyRejected, BalanceExhausted) as error:
        data["code"] = error.code
    services.emit(events.Event(events.TOKEN_REPORTED, data))
