"""Where code of the team may listen to an attempt; it changes neither its course nor its verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pytest_captcha_qa.model.extra import Scalar
from pytest_captcha_qa.model.form import FormSpec
from pytest_captcha_qa.model.record import AttemptLine
from pytest_captcha_qa.model.url import Url


class Extensions(Protocol):
    """What a team has added to every attempt; only what ends a process, such as Ctrl-C, comes out of it."""

    def opened(self, form: FormSpec, page: Url) -> None:
        """Tell that the form was opened on its granted page."""

    def extra(self, line: AttemptLine) -> Mapping[str, Scalar]:
        """Return the fields that are added to the record of an attempt."""


class NoExtensions:
    """Adds nothing."""

    def opened(self, form: FormSpec, page: Url) -> None:
        """Do nothing."""

    def extra(self, line: AttemptLine) -> Mapping[str, Scalar]:
        """Return no fields."""
        return {}
