"""The solving service: `in.php` takes tasks, `res.php` hands out their results, in the CaptchaAI dialect."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from pytest_captcha_qa.sandbox.audit import Audit
from pytest_captcha_qa.sandbox.effects import Fate, NotReadyForever, Slow, Unsolvable
from pytest_captcha_qa.sandbox.faults import Call, FaultPlan
from pytest_captcha_qa.sandbox.tasks import Refused, rule_for
from pytest_captcha_qa.sandbox.tokens import Binding, Clock, TokenRegistry
from pytest_captcha_qa.sandbox.types import TYPES
from pytest_captcha_qa.sandbox.web import Fields, UnreadableBody, is_loopback, read_fields

KEY_LENGTH = 32
UNKNOWN_KEY = "0" * KEY_LENGTH
"""The one key of the right length that does not exist."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A good answer in both grammars."""

    json: Mapping[str, Any]
    plain: str

    @classmethod
    def of(cls, value: object, plain: str | None = None) -> Answer:
        """Return the usual answer with a value: `OK|value`, or status 1 and the value."""
        return cls({"status": 1, "request": value}, f"OK|{value if plain is None else plain}")


@dataclass(frozen=True, slots=True)
class KeyState:
    """What an account has."""

    balance: float = 10.0
    threads: int = 100


@dataclass(slots=True)
class Task:
    """One task of one key, from its acceptance on."""

    id: str
    key: str
    binding: Binding
    ready_at: float
    fate: Fate | None
    answer: Answer | None = None

    @property
    def form(self) -> str:
        """The path of the page, as faults name forms."""
        return urlsplit(self.binding.page).path.strip("/")


@dataclass(slots=True)
class Provider:
    """The state of the service, and what its two endpoints do."""

    registry: TokenRegistry
    audit: Audit
    faults: FaultPlan
    rng: Random
    time_scale: float = 1.0
    clock: Clock = time.monotonic
    keys: dict[str, KeyState] = field(default_factory=dict)
    next_id: int = field(default_factory=lambda: int(time.time() * 1000))
    """Above 2**32, as production ids are; from the clock, so that no later sandbox repeats an id."""
    _tasks: dict[str, Task] = field(default_factory=dict)
    _busy_until: dict[str, list[float]] = field(default_factory=dict)

    def submit(self, fields: Fields, method: str) -> Answer:
        """Take a task, as `in.php` does. Raises Refused."""
        page = fields.get("pageurl")
        self._strike(Call("/in.php", method, form=_path_of(page)))
        key = self._key(fields)
        rule = rule_for(fields)
        if not _is_loopback_page(page):
            raise Refused("ERROR_PAGEURL")
        binding = rule.binding(fields, page)
        self._admit(key)
        task = self._accept(key, binding, Call("/in.php", method, form=_path_of(page)))
        return Answer.of(int(task.id) if rule.integer_id else task.id)

    def result(self, fields: Fields, method: str) -> Answer:
        """Answer an action of `res.php`. Raises Refused."""
        task = self._tasks.get(fields.get("id"))
        self._strike(Call("/res.php", method, form=task.form if task else ""))
        key = self._key(fields)
        name = fields.get("action")
        if not name:
            raise Refused("ERROR_EMPTY_ACTION")
        action = ACTIONS.get(name)
        if action is None:
            raise Refused("ERROR_BAD_PARAMETERS")
        return action(self, key, fields)

    def get(self, key: str, fields: Fields) -> Answer:
        """Return the result of a task. Raises Refused, also while it is being solved."""
        task_id = fields.get("id")
        if not (task_id.isascii() and task_id.isdigit()):
            raise Refused("ERROR_WRONG_ID_FORMAT")
        task = self._tasks.get(task_id)
        if task is None or task.key != key:
            raise Refused("ERROR_WRONG_CAPTCHA_ID")
        self.audit.provider.polled(key, task.id)
        if isinstance(task.fate, NotReadyForever) or self.clock() < task.ready_at:
            raise Refused("CAPCHA_NOT_READY")
        answer = self._answer(task)
        self.audit.provider.read(key, task.id)
        return answer

    def balance(self, key: str, fields: Fields) -> Answer:
        """Return the account's balance: a bare number, and a string in JSON."""
        amount = f"{self._state(key).balance:.5f}"
        return Answer({"status": 1, "request": amount}, amount)

    def threads(self, key: str, fields: Fields) -> Answer:
        """Return how many threads the account has and how many are working."""
        threads, working = str(self._state(key).threads), str(self._working(key))
        return Answer({"status": 1, "threads": threads, "working_threads": working}, f"{threads}|{working}")

    def _strike(self, call: Call) -> None:
        code = self.faults.error_for(call)
        if code is not None:
            raise Refused(code)

    def _key(self, fields: Fields) -> str:
        key = fields.get("key")
        if len(key) != KEY_LENGTH:
            raise Refused("ERROR_WRONG_USER_KEY")
        if key == UNKNOWN_KEY:
            raise Refused("ERROR_KEY_DOES_NOT_EXIST")
        return key

    def _state(self, key: str) -> KeyState:
        return self.keys.get(key, KeyState())

    def _working(self, key: str) -> int:
        now = self.clock()
        busy = [moment for moment in self._busy_until.get(key, ()) if moment > now]
        self._busy_until[key] = busy
        return len(busy)

    def _admit(self, key: str) -> None:
        """Refuse a key without money or without a free thread; CaptchaAI uses one code for both."""
        state = self._state(key)
        if state.balance <= 0 or self._working(key) >= state.threads:
            raise Refused("ERROR_ZERO_BALANCE")

    def _accept(self, key: str, binding: Binding, call: Call) -> Task:
        self.next_id += self.rng.randint(1, 9)
        fate = self.faults.fate_of(call)
        seconds = TYPES[binding.type].solve_seconds(self.rng) * self.time_scale
        seconds *= fate.factor if isinstance(fate, Slow) else 1
        task = Task(str(self.next_id), key, binding, self.clock() + seconds, fate)
        self._tasks[task.id] = task
        self._busy_until.setdefault(key, []).append(task.ready_at)
        self.audit.provider.submitted(key, task.id, binding.type)
        return task

    def _answer(self, task: Task) -> Answer:
        """Return the task's answer, the same at every read. Raises Refused."""
        if task.answer is None:
            self._give_up_if_doomed(task)
            token = self.registry.issue(task.binding, issued_at=task.ready_at)
            task.answer = _ANSWERS.get(task.binding.type, _text_answer)(token.text, task.binding)
        return task.answer

    def _give_up_if_doomed(self, task: Task) -> None:
        if isinstance(task.fate, Unsolvable):
            self.audit.provider.failed(task.id)
            raise Refused("ERROR_CAPTCHA_UNSOLVABLE")
        if self.registry.challenge_is_spent(task.binding.challenge):
            self.audit.provider.failed(task.id)
            raise Refused("ERROR_TOKEN_EXPIRED")


ACTIONS = MappingProxyType({"get": Provider.get, "getbalance": Provider.balance, "threadsinfo": Provider.threads})


def _text_answer(text: str, binding: Binding) -> Answer:
    return Answer.of(text)


def _geetest_answer(text: str, binding: Binding) -> Answer:
    parts = {"challenge": binding.challenge, "validate": text, "seccode": f"{text}|jordan"}
    return Answer.of(parts, plain=",".join(f"{name}:{value}" for name, value in parts.items()))


_ANSWERS = MappingProxyType({"geetest_v3": _geetest_answer})


def _path_of(page: str) -> str:
    try:
        return urlsplit(page).path.strip("/")
    except ValueError:
        return ""


def _is_loopback_page(page: str) -> bool:
    try:
        parts = urlsplit(page)
        return parts.scheme in ("http", "https") and is_loopback(parts.hostname or "")
    except ValueError:
        return False


def build_app(provider: Provider) -> Starlette:
    """Return the service as an ASGI application."""

    endpoints = {"/in.php": provider.submit, "/res.php": provider.result}

    async def answer(request: Request) -> Response:
        try:
            fields = await read_fields(request)
        except UnreadableBody:
            return _render_error("ERROR_BAD_PARAMETERS", request.query_params.get("json"))
        try:
            found = endpoints[request.url.path](fields, request.method)
        except Refused as refused:
            provider.audit.provider.codes[refused.code] += 1
            return _render_error(refused.code, fields.get("json"))
        return JSONResponse(dict(found.json)) if fields.get("json") == "1" else PlainTextResponse(found.plain)

    return Starlette(routes=[Route(path, answer, methods=["GET", "POST"]) for path in endpoints])


def _render_error(code: str, json_flag: str | None) -> Response:
    return JSONResponse({"status": 0, "request": code}) if json_flag == "1" else PlainTextResponse(code)
