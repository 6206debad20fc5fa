"""Whatever a key is set up with and whatever it sends, the solving service answers in one of its two grammars."""

from __future__ import annotations

import base64
import json
from dataclasses import fields as fields_of
from enum import StrEnum
from typing import Any, get_type_hints

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pytest_captcha_qa.sandbox import altcha, pictures
from pytest_captcha_qa.sandbox.accounts import KeyState
from pytest_captcha_qa.sandbox.dialects import DIALECTS
from pytest_captcha_qa.sandbox.provider_api import ACTIONS
from pytest_captcha_qa.sandbox.switches import Switches
from pytest_captcha_qa.sandbox.tasks import RULES

SITEKEY = "6LcSANDBOXv2sitekeyAAAAAAAAAAAAAAAAAAAAA"
HINTS = get_type_hints(Switches)
METHODS = sorted({rule.method for rule in RULES})
GOOD = {
    "googlekey": SITEKEY,
    "sitekey": SITEKEY,
    "gt": "5a9db0c4ca7a00000000000000000001",
    "captcha_id": "5a9db0c4ca7a00000000000000000001",
    "challenge": "c" * 32,
    "challenge_json": json.dumps(altcha.new_challenge("key", expires=2e9)),
    "body": base64.b64encode(pictures.drawn("QATEST12345")).decode(),
    "pageurl": "http://127.0.0.1/x",
}
ODD = st.one_of(
    st.sampled_from(["", "0", "1", "v2", "v3", "v4", "9" * 5000, "[", "{}", "null", "\x00"]), st.text(max_size=9)
)


def choice(name: str) -> st.SearchStrategy[Any]:
    kind = HINTS[name]
    if kind is bool:
        return st.booleans()
    return st.sampled_from(list(kind)) if issubclass(kind, StrEnum) else st.integers(0, 5000)


switches = st.fixed_dictionaries({}, optional={spec.name: choice(spec.name) for spec in fields_of(Switches)})
states = st.fixed_dictionaries(
    {"dialect": st.sampled_from(["", *DIALECTS])},
    optional={"threads": st.integers(0, 2), "refused": st.sampled_from(["", "ERROR: 1001", "IP_BANNED"])},
)
parameters = st.fixed_dictionaries(
    {"method": st.sampled_from(METHODS)},
    optional={name: st.one_of(st.just(good), ODD) for name, good in GOOD.items()}
    | dict.fromkeys(("version", "enterprise", "invisible", "json", "action", "proxytype", "header_acao"), ODD),
)
polls = st.fixed_dictionaries(
    {"action": st.sampled_from([*ACTIONS, "", "dance"])},
    optional={"json": ODD, "ids": ODD, "odd_id": ODD},
)


@example({"dialect": "capskip"}, {}, {"method": "altcha"}, [{"action": "get", "odd_id": "9" * 5000}], "POST")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(states, switches, parameters, st.lists(polls, max_size=4), st.sampled_from(["GET", "POST"]))
def test_every_call_gets_an_answer(
    world: Any, provider: Any, key: str, state: Any, switched: Any, sent: Any, asked: Any, verb: str
) -> None:
    world.provider.keys[key] = KeyState.from_data({**state, **switched})
    taken = (
        provider.post("/in.php", {"key": key, **sent})
        if verb == "POST"
        else provider.get("/in.php", {"key": key, **sent})
    )
    assert is_an_answer(taken)
    world.clock.advance(500)
    task_id = list(world.work.tasks)[-1] if world.work.tasks else "1"
    for call in asked:
        fields = {"key": key, "id": call.get("odd_id", task_id), **{n: v for n, v in call.items() if n != "odd_id"}}
        assert is_an_answer(provider.get("/res.php", fields))


def is_an_answer(reply: Any) -> bool:
    """Tell whether it is plain text, or JSON with a status or the threads."""
    if reply.status != 200:
        return False
    if not reply.body.startswith(b"{"):
        return True
    body = reply.json()
    return body.get("status") in (0, 1) or "threads" in body
