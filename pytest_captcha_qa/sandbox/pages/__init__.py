"""The pages of the demo site: templates, and the one function that fills them."""

from __future__ import annotations

import html
from functools import cache
from pathlib import Path
from string import Template

_FOLDER = Path(__file__).parent


class Html(str):
    """Text that is HTML already and is not escaped again."""

    __slots__ = ()


NOTHING = Html()


def render(template: str, **values: str) -> Html:
    """Return a template with its values filled in, escaped unless they are Html."""
    safe = {name: text if isinstance(text, Html) else html.escape(text) for name, text in values.items()}
    return Html(_template(template).substitute(safe))


@cache
def _template(name: str) -> Template:
    return Template((_FOLDER / f"{name}.html").read_text("utf-8"))
