"""The `in.php` / `res.php` protocol as pure functions: what is sent, and what an answer says.

No answer makes these functions raise: one that is neither a result nor a known code is `Noise`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.solver_proxy import SolverProxy
from pytest_captcha_qa.model.token import TOKEN, Solution
from pytest_captcha_qa.provider.describing import described_json, described_text, is_code
from pytest_captcha_qa.provider.dialects import Method

Pairs = list[tuple[str, str]]

_ID = re.compile(r"[A-Za-z0-9._-]{1,80}\Z")
# No vendor's token has what HTML and JSON are made of.
_TOKEN = re.compile(r"[!#-;=?-\[\]-z|~]+\Z")
_COOKIE_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+\Z", re.ASCII)
_COOKIE_VALUE = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*\Z")
_DECIMAL = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?\Z", re.ASCII)
_USER_AGENT = re.compile(r"[\x21-\x7e][\x20-\x7e]{0,499}\Z")
_USER_AGENTS = ("useragent", "userAgent", "user_agent")
_GOOD, _BAD = (1, "1"), (0, "0")
_ACCEPTED = "OK|"
_REPORTED = "OK_REPORT_RECORDED"


@dataclass(frozen=True, slots=True)
class Good:
    """An answer with a result: `value` stood in `request` or after `OK|`, `fields` is the JSON object."""

    value: object = field(repr=False)
    fields: Mapping[str, object] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is exactly one of the known codes, "not ready" included."""

    code: str


@dataclass(frozen=True, slots=True)
class Noise:
    """Something else; `what` says in our own words what."""

    what: str


Answer = Good | Refusal | Noise


def submit_pairs(method: Method, challenge: Challenge, proxy: SolverProxy | None = None) -> Pairs:
    """Return the parameters of a submit, without the key: those the method lists and no others (R0.5).

    `proxy`: the one the team set, if any; left out where the type is not solved through one.
    """
    pairs = [("method", method.name), *method.fixed]
    for parameter in method.parameters:
        value = parameter.source(challenge)
        if value is not None:
            pairs.append((parameter.name, value))
    if proxy is not None and method.proxied:
        pairs += [("proxy", proxy.address), ("proxytype", proxy.kind)]
    return [*pairs, ("json", "1")]


def missing(method: Method, challenge: Challenge) -> list[str]:
    """Return the required parameters for which the challenge has no value."""
    return [it.name for it in method.parameters if it.required and not it.source(challenge)]


def read_answer(text: str, known_codes: Collection[str]) -> Answer:
    """Return what an answer says, in either grammar, whichever of the two was asked for.

    Codes are compared whole: an answer that contains the letters ERROR is still an answer.
    """
    text = text.strip()
    if text in known_codes:
        return Refusal(text)
    if text.startswith(_ACCEPTED):
        value = text.removeprefix(_ACCEPTED)
        return _good(value, {}, known_codes) or Noise(described_text(value))
    if not text or text.startswith("<"):
        return Noise(described_text(text))
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        return Noise(described_text(text))
    return _read_json(decoded, known_codes) or Noise(described_json(decoded, len(text)))


def described(text: str) -> str:
    """Return what an answer looked like, whatever it says, in our own words."""
    answer = read_answer(text, ())
    return answer.what if isinstance(answer, Noise) else f"an answer of {len(text)} characters"


def _read_json(decoded: object, known_codes: Collection[str]) -> Good | Refusal | None:
    if isinstance(decoded, str) and decoded in known_codes:
        return Refusal(decoded)
    if not isinstance(decoded, dict):
        return None
    status, value = decoded.get("status"), decoded.get("request")
    # Whether `threadsinfo` has a status is unconfirmed; nothing else counts as a result without one.
    if status in _GOOD or ("status" not in decoded and "threads" in decoded):
        return _good(value, decoded, known_codes)
    if status in _BAD and isinstance(value, str) and value.strip() in known_codes:
        return Refusal(value.strip())
    return None


def _good(value: object, fields: Mapping[str, object], known_codes: Collection[str]) -> Good | Refusal | None:
    # A code may stand wherever a token may, with all that may stand around one.
    text = _priceless(_said_once(next(_texts([value, *_places(fields)]), "")))[0]
    if text in known_codes:
        return Refusal(text)
    return None if is_code(text) else Good(value, fields)  # an unknown error is not handed out as a token either


def _places(fields: Mapping[str, object]) -> tuple[object, object]:
    """Return what stands where a token may, beside `request`."""
    return fields.get("result"), fields.get("solution")


def _texts(places: Iterable[object]) -> Iterator[str]:
    for place in places:
        text = place.get(TOKEN) if isinstance(place, dict) else place
        if isinstance(text, str) and text.strip():
            yield text.strip()


def without_price(answer: Good) -> tuple[Good, float | None]:
    """Return the answer to `get2` and its price: a value in JSON, and what stands behind the last `|` of a text."""
    if answer.fields or not isinstance(answer.value, str):
        return answer, _price(answer.fields.get("price"))
    value, price = _priceless(answer.value)
    return Good(value), price


def _priceless(text: str) -> tuple[str, float | None]:
    value, _, behind = text.rpartition("|")
    price = _price(behind) if value else None
    return (text, None) if price is None else (value, price)


def _price(value: object) -> float | None:
    price = read_decimal(value)
    return price if price is not None and price >= 0 else None


def is_report_recorded(text: str) -> bool:
    """Return whether a report on a token was taken, said as text; the form it has as JSON is unconfirmed."""
    return text.strip() == _REPORTED


def read_task_id(answer: Good) -> str | None:
    """Return the id of an accepted task; CaptchaAI sends it as a JSON number for some methods."""
    task_id = _said_once(_text(answer.value))
    return task_id if _ID.match(task_id) else None


def read_solution(answer: Good, method: Method) -> Solution | None:
    """Return the solution, without wait and task id, or None if what the type needs is not in the answer.

    The token is looked for in `request`, then `result`, then `solution.token`. Several values may come as an
    object, as JSON in a string, or as `name:value,name:value`, with or without the prefix `geetest_`.
    """
    places = [answer.value, *_places(answer.fields)]
    reader = _read_token if method.parts == (TOKEN,) else _read_parts
    for place in places:
        parts = reader(place, method)
        if parts is not None:
            agent = _user_agent(answer.fields, *places)
            return Solution(MappingProxyType(parts), user_agent=agent, cookies=_cookies(answer.fields))
    return None


def _read_token(place: object, method: Method) -> dict[str, str] | None:
    value = place.get(TOKEN) if isinstance(place, dict) else place
    if method.free_text:
        text = _text(value)  # digits may come as a number
        return {TOKEN: text} if text and text.isprintable() else None
    text = _said_once(value.strip()) if isinstance(value, str) else ""
    return {TOKEN: text} if _TOKEN.match(text) else None


def _text(value: object) -> str:
    """Return a text or a whole number as text, empty for anything else."""
    return str(value).strip() if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def _said_once(text: str) -> str:
    """Return what was accepted where a service wrote its answer as text into one as JSON, or twice."""
    while text.startswith(_ACCEPTED):
        text = text.removeprefix(_ACCEPTED)
    return text


def _read_parts(place: object, method: Method) -> dict[str, str] | None:
    values = _named_values(place, method.parts)
    found = {}
    for name in method.parts:
        value = values.get(name, values.get(f"geetest_{name}"))
        text = _text(value)
        if not _TOKEN.match(text):
            return None
        found[name] = text
    return found


def _named_values(place: object, names: Iterable[str]) -> Mapping[str, object]:
    if isinstance(place, dict):
        return place
    if not isinstance(place, str):
        return {}
    try:
        decoded = json.loads(place)
    except (ValueError, RecursionError):
        pairs = (item.partition(":") for item in place.split(","))
        return {name.strip(): value.strip() for name, _, value in pairs}
    return decoded if isinstance(decoded, dict) else {}


def _user_agent(*places: object) -> str | None:
    for place in places:
        if isinstance(place, dict):
            for name in _USER_AGENTS:
                agent = place.get(name)
                if isinstance(agent, str) and _USER_AGENT.match(agent.strip()):
                    return agent.strip()
    return None


def _cookies(fields: Mapping[str, object]) -> Mapping[str, str]:
    """Return cookies told as an object, a list of objects or `name=value; …`, without what cannot be one."""
    solution = fields.get("solution")
    told = fields.get("cookies") or (solution.get("cookies") if isinstance(solution, dict) else None)
    pairs: list[tuple[object, object]] = []
    if isinstance(told, dict):
        pairs = list(told.items())
    elif isinstance(told, list):
        pairs = [(it.get("name"), it.get("value")) for it in told if isinstance(it, dict)]
    elif isinstance(told, str):
        split = (re.split("[=:]", item.strip(), maxsplit=1) for item in told.split(";"))
        pairs = [(it[0], it[1]) for it in split if len(it) == 2]
    return MappingProxyType({str(name): str(value) for name, value in pairs if _is_cookie(name, value)})


def _is_cookie(name: object, value: object) -> bool:
    if not isinstance(name, str) or not isinstance(value, str):
        return False
    return bool(_COOKIE_NAME.match(name) and _COOKIE_VALUE.match(value))


def read_decimal(value: object) -> float | None:
    """Return a balance, which is a decimal as text or a number."""
    digits = str(value).strip() if isinstance(value, (str, int, float)) else ""
    return float(digits) if _DECIMAL.match(digits) else None


def read_threads(answer: Good) -> tuple[int, int] | None:
    """Return slots and slots in use; CaptchaAI's SDK casts both, so they may be strings."""
    threads, working = (_count(answer.fields.get(name)) for name in ("threads", "working_threads"))
    return None if threads is None or working is None else (threads, working)


def _count(value: object) -> int | None:
    digits = str(value).strip() if isinstance(value, (str, int)) else ""
    return int(digits) if re.fullmatch(r"\d{1,9}", digits, re.ASCII) else None
