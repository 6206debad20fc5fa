"""What a site answered, and the rules that a team states about answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from pytest_captcha_qa.model.body import Scalar
from pytest_captcha_qa.model.url import Url


@dataclass(frozen=True, slots=True)
class Answer:
    """What the site answered: `location` is the redirect target or None, `text` the decoded body.

    `retry_after`: in how many seconds it wants to be asked again, None where it does not say.
    """

    status: int
    url: Url
    location: Url | None = None
    content_type: str = ""
    text: str = field(default="", repr=False)
    retry_after: float | None = None

    def json_value(self, dotted: str, default: object = None) -> Any:
        """Return the value at a dotted path of the JSON body, `default` if it is not there; numbers index lists."""
        found, value = self.find_json(dotted)
        return value if found else default

    def find_json(self, dotted: str) -> tuple[bool, object]:
        """Return (found, value) at a dotted path of the JSON body, for who must tell a null from nothing."""
        try:
            value: object = json.loads(self.text)
        except (ValueError, RecursionError):
            return False, None
        for step in dotted.split("."):
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
                value = value[int(step)]
            else:
                return False, None
        return True, value


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition on an answer; every part that is given must hold.

    `location` is a shell pattern over path and query of a redirect target on the same origin, or over the whole URL if
    it starts with http. `json` maps dotted paths to expected values.
    """

    status: tuple[int, ...] = ()
    location: str | None = None
    text: str | None = None
    absent: str | None = None
    json: Mapping[str, Scalar] = field(default_factory=dict)
    all: tuple[Rule, ...] = ()

    def matches(self, answer: Answer) -> bool:
        """Return whether the answer meets every part of the rule."""
        return not self.unmet(answer)

    def unmet(self, answer: Answer) -> list[str]:
        """Return what the answer lacks, in words; empty if the rule is met."""
        lacking: list[str] = []
        if self.status and answer.status not in self.status:
            lacking.append(f"the status {' or '.join(map(str, self.status))} (was {answer.status})")
        if self.location is not None and not self._location_matches(answer):
            went = f"to {answer.location.without_query}" if answer.location else "nowhere"
            lacking.append(f"a redirect to {self.location} (it went {went})")
        if self.text is not None and self.text not in answer.text:
            lacking.append(f"the text {self.text!r}")
        if self.absent is not None and self.absent in answer.text:
            lacking.append(f"absence of the text {self.absent!r}")
        for path, expected in self.json.items():
            found, value = answer.find_json(path)
            if not found or value != expected or isinstance(value, bool) != isinstance(expected, bool):
                lacking.append(f"JSON {path} = {json.dumps(expected)}")
        for rule in self.all:
            lacking.extend(rule.unmet(answer))
        return lacking

    def _location_matches(self, answer: Answer) -> bool:
        assert self.location is not None
        if answer.location is None:
            return False
        if self.location.startswith(("http://", "https://")):
            return fnmatchcase(str(answer.location), self.location)
        # A path is one of the site itself: the same path elsewhere is not where a success leads.
        own = answer.location.origin == answer.url.origin
        return own and fnmatchcase(answer.location.target, self.location)
