"""What is kept of the requests of an attempt until it is known whether it failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_captcha_qa.model.url import Url


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Exchange:
    """One request to the site under test and its answer, which is None if no complete one came.

    `headers`: the names of what was sent, with the values that may be shown, None for the others; `fields`: the names
    in query and body, each with the length of its value; `answer_headers` only those that may be shown; `text`: the
    body of the answer as it came; `secrets`: values that were sent or kept and must not be shown; `why`: why no answer
    came. It prints as method, address and status only.
    """

    method: str
    url: Url
    headers: Mapping[str, str | None]
    fields: tuple[tuple[str, int], ...] = ()
    status: int | None = None
    answer_headers: Mapping[str, str]
    text: str = ""
    secrets: tuple[str, ...] = ()
    why: str | None = None
    step: str = ""

    def __repr__(self) -> str:
        return f"<Exchange {self.method} {self.url.without_query} {self.status}>"
