"""The page as one file that loads nothing: template, style, scripts and data; its policy names them by their hashes."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files

import jinja2
import vl_convert
from markupsafe import Markup

from pytest_captcha_qa.reporting.dashboard import formats
from pytest_captcha_qa.reporting.dashboard.contents import contents
from pytest_captcha_qa.reporting.dashboard.drawn import drawn
from pytest_captcha_qa.reporting.dashboard.fitting import MOST_BYTES, SHARES, fitted
from pytest_captcha_qa.reporting.dashboard.model import DIMENSIONS, Dashboard, Level, Tag


def render(page: Dashboard) -> str:
    """Return the page as HTML, with fewer rows where it would be larger than two megabytes."""
    totals = Counter(row.level for row in page.movers)
    text = ""
    for share in SHARES:
        text = _rendered(fitted(page, share), totals)
        if len(text.encode(errors="surrogatepass")) <= MOST_BYTES:
            break
    return text


def _rendered(page: Dashboard, totals: Mapping[Level, int]) -> str:
    scripts = [bundle(), _resource("page.js")]
    style = _resource("page.css")
    names = {name: page.choices(name) for name in DIMENSIONS.values()}
    embedded = {
        "policy": _policy(scripts, style),
        "style": Markup(style),
        "scripts": [Markup(script) for script in scripts],
        "data": Markup(_inert(drawn(page, names))),
    }
    return _environment(names).get_template("page.html.j2").render(contents(page, totals) | embedded)


def _environment(names: Mapping[str, Sequence[str]]) -> jinja2.Environment:
    """Return the templates' environment; a value that is missing is an error, not an empty place."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_resource), autoescape=True, undefined=jinja2.StrictUndefined
    )
    places = {name: {value: place for place, value in enumerate(values)} for name, values in names.items()}
    environment.filters |= formats.FILTERS | {
        "attrs": lambda tag: _attributes(tag, places),
        "index": lambda value, name: places[name].get(value, ""),
    }
    return environment


def _attributes(tag: Tag, places: Mapping[str, Mapping[str, int]]) -> Markup:
    """Return what filters look at as places in the lists of names: no text of a record stands in an attribute."""
    found = ((key, places[name].get(getattr(tag, name))) for key, name in DIMENSIONS.items())
    return Markup(" ".join(f'data-{key}="{place}"' for key, place in found if place is not None))


@cache
def bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed with all they need, as one script."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(scripts: Iterable[str], style: str) -> Markup:
    """Return the content security policy: these scripts and this style, nothing else, no eval, no request."""
    allowed = " ".join(map(_hash, scripts))
    return Markup(
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _inert(value: object) -> str:
    """Return JSON that ends no script, opens no comment and breaks no line, whatever its strings hold."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
