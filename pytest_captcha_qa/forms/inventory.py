"""What a page has, for a reader who asks why a form failed: its forms, and its widgets by type."""

from __future__ import annotations

from typing import Any

from lxml import etree

from pytest_captcha_qa.errors import CaptchaQAError
from pytest_captcha_qa.forms.markup import Markup, parse
from pytest_captcha_qa.forms.naming import describe, describe_form
from pytest_captcha_qa.forms.outline import Element
from pytest_captcha_qa.forms.scripts import types_loaded
from pytest_captcha_qa.forms.widgets import find_widgets
from pytest_captcha_qa.model.evidence import Exchange

_MOST = 20
_NAME = 80  # characters of a field's name


def inventory(exchange: Exchange) -> dict[str, Any]:
    """Return what the page in an answer has: names and places only, no value of a field."""
    try:
        return _listed(parse(exchange.text, exchange.url))
    except CaptchaQAError as error:
        return {"unreadable": error.message}
    except etree.LxmlError as error:
        return {"unreadable": type(error).__name__}


def _listed(markup: Markup) -> dict[str, Any]:
    widgets: dict[str, list[str]] = {}
    for widget in find_widgets(markup)[:_MOST]:
        widgets.setdefault(widget.type, []).append(describe(widget, markup))
    return {
        "forms": [_form(markup, element) for element in markup.forms[:_MOST]],
        "widgets": widgets,
        "scripts": [str(kind) for kind in types_loaded(markup)],
        "complete": markup.complete,
    }


def _form(markup: Markup, element: Element) -> dict[str, Any]:
    fields = [name[:_NAME] for name in markup.control_names(element)[: 3 * _MOST]]
    return {"form": describe_form(element), "method": (element.get("method") or "get").lower()[:8], "fields": fields}
