"""One widget on a page, as the finders of its type read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pytest_captcha_qa.forms.outline import Element
from pytest_captcha_qa.forms.places import Place
from pytest_captcha_qa.model.captcha import CaptchaType

Fields = Mapping[str, str]
"""Names of form fields, each with the part of the solution it takes."""


@dataclass(frozen=True, slots=True)
class Widget:
    """One widget on a page. `element` is None if only a script shows it.

    `sitekey`: empty for a type without one; `scripted`: a script sets the sitekey or the challenge from a variable, so
    the page does not show it; `response_field`: the field's name where the page chooses it.
    """

    type: CaptchaType
    sitekey: str
    element: Element | None = field(default=None, repr=False, compare=False)
    action: str | None = None
    cdata: str | None = None
    data: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    scripted: bool = False
    response_field: str | None = None


def placed(place: Place, kind: CaptchaType, **more: str | None) -> Widget:
    """Return the widget that stands in a place."""
    key = (place.get("sitekey") or "").strip()
    return Widget(kind, key, place.element, scripted=place.is_scripted, **more)  # type: ignore[arg-type]


def always(names: Fields) -> Callable[[Widget, tuple[str, ...]], Fields]:
    """Return what says that a widget fills these fields, whatever its form has."""
    return lambda widget, controls: names
