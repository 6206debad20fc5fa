"""The solving service: `in.php` takes tasks, `res.php` hands out their results, each key in its own dialect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope

from pytest_captcha_qa.sandbox import answers
from pytest_captcha_qa.sandbox.accounts import Account, KeyState, account
from pytest_captcha_qa.sandbox.answers import Answer
from pytest_captcha_qa.sandbox.audit import Audit
from pytest_captcha_qa.sandbox.binding import Binding
from pytest_captcha_qa.sandbox.effects import LostId
from pytest_captcha_qa.sandbox.faults import Call, FaultPlan
from pytest_captcha_qa.sandbox.fetching import with_challenge
from pytest_captcha_qa.sandbox.images import image_of, text_of
from pytest_captcha_qa.sandbox.switches import Ids, Switches, Unknown, Waiting
from pytest_captcha_qa.sandbox.tasks import Refused, TaskRule, rule_for
from pytest_captcha_qa.sandbox.web import Fields, UnreadableBody, is_loopback, query_fields, read_fields, replay
from pytest_captcha_qa.sandbox.work import Task, Work

_SILENCE = ""
"""The code of an answer with an empty body."""
_PRICE = "0.00299"


@dataclass(slots=True)
class Provider:
    """The state of the service, and what its two endpoints do."""

    work: Work
    audit: Audit
    faults: FaultPlan
    keys: dict[str, KeyState] = field(default_factory=dict)

    def account(self, fields: Fields) -> Account:
        """Return the account whose key a call came with."""
        return account(fields.get("key"), self.keys)

    def call(self, path: str, method: str, fields: Fields) -> Call:
        """Return what faults may be limited to in a call."""
        task = self.work.tasks.get(fields.get("id"))
        form, type_ = (task.form, task.binding.type) if task else (_path_of(fields.get("pageurl")), _type_of(fields))
        told = {"key": fields.get("key"), "action": fields.get("action"), "task": task.id if task else ""}
        return Call(path, method, form, **told, type=type_)

    def submit(self, fields: Fields, method: str) -> Answer:
        """Take a task, as `in.php` does. Raises Refused."""
        call = self.call("/in.php", method, fields)
        self._strike(call)
        account = self.account(fields)
        account.check()
        rule = rule_for(fields)
        if not account.takes(rule.type, rule.method, method, fields.get("proxytype")):
            raise Refused("ERROR_BAD_PARAMETERS")
        switches = account.switches(rule.type)
        binding = _binding(rule, fields, switches)
        self.work.admit(account)
        if self.faults.answer(LostId, call) is not None:
            return _id_answer(self.work.lost_id(), switches)
        return _id_answer(self.work.accept(account, binding, self.faults.fate_of(call)).id, switches)

    def result(self, fields: Fields, method: str) -> Answer:
        """Answer an action of `res.php`. Raises Refused."""
        self._strike(self.call("/res.php", method, fields))
        account = self.account(fields)
        account.check()
        name = fields.get("action")
        if not name:
            raise Refused("ERROR_EMPTY_ACTION")
        if name not in account.dialect.actions or method not in account.dialect.result_verbs:
            raise Refused("ERROR_BAD_PARAMETERS")
        return ACTIONS[name](self, account, fields)

    def get(self, account: Account, fields: Fields) -> Answer:
        """Return the result of a task, or those of several. Raises Refused, also while it is being solved."""
        if "ids" in fields and "id" not in fields:
            return self._batch(account, fields.get("ids").split(","))
        task = self._task(account, fields.get("id"))
        return answers.solved_answer(self._read(account, task), account.switches(task.binding.type))

    def get_priced(self, account: Account, fields: Fields) -> Answer:
        """Return the result of a task and what it cost. Raises Refused."""
        task = self._task(account, fields.get("id"))
        return answers.solved_answer(self._read(account, task), account.switches(task.binding.type), price=_PRICE)

    def balance(self, account: Account, fields: Fields) -> Answer:
        """Return the account's balance: a bare number, and what the switch says in JSON."""
        amount = account.state.balance
        text = f"{amount:.5f}"
        return Answer({"status": 1, "request": answers.number(amount, text, account.switches().balance_as)}, text)

    def threads(self, account: Account, fields: Fields) -> Answer:
        """Return how many threads the account has and how many are working."""
        switches, threads, working = account.switches(), account.state.threads, self.work.working(account)
        counts = {"threads": threads, "working_threads": working}
        if switches.free_threads:
            counts["free_threads"] = threads - working
        told = {name: answers.number(count, str(count), switches.threads_as) for name, count in counts.items()}
        status = {"status": 1} if switches.threads_status else {}
        return Answer({**status, **told}, "|".join(str(count) for count in counts.values()))

    def report_good(self, account: Account, fields: Fields) -> Answer:
        """Take the news that a token was accepted. Raises Refused."""
        return self._report(account, fields, good=True)

    def report_bad(self, account: Account, fields: Fields) -> Answer:
        """Take the news that a token was refused. Raises Refused."""
        return self._report(account, fields, good=False)

    def _report(self, account: Account, fields: Fields, *, good: bool) -> Answer:
        task = self._task(account, fields.get("id"))
        if not task.reads:
            raise Refused("ERROR_REPORT_NOT_RECORDED")
        self.work.report(task, good=good)
        recorded = "OK_REPORT_RECORDED"
        return Answer({"status": 1, "request": recorded}, recorded)

    def _batch(self, account: Account, ids: list[str]) -> Answer:
        """Return the results of several tasks, as clients of this parameter read them: items joined by `|`."""
        items = "|".join(self._item(account, task_id) for task_id in ids)
        return Answer({"status": 1, "request": items}, items)

    def _item(self, account: Account, task_id: str) -> str:
        try:
            task = self._task(account, task_id)
            return answers.bare(self._read(account, task), account.switches(task.binding.type))
        except Refused as refused:
            return account.spelled(refused.code)

    def _task(self, account: Account, task_id: str) -> Task:
        if not (task_id.isascii() and task_id.isdigit()):
            raise Refused("ERROR_WRONG_ID_FORMAT")
        task = self.work.find(task_id, account.key)
        if task is not None:
            return task
        # CapSkip's own texts disagree: an unknown id is silence, and for 0 the code is named.
        silent = account.switches().unknown_id is Unknown.EMPTY and task_id.strip("0")
        raise Refused(_SILENCE if silent else "ERROR_WRONG_CAPTCHA_ID")

    def _read(self, account: Account, task: Task) -> answers.Solved:
        switches = account.switches(task.binding.type)
        self.audit.provider.polled(account.key, task.id)
        task.polls += 1
        if self.work.is_waiting(task):
            raise Refused(_SILENCE if _is_silent(switches, task) else "CAPCHA_NOT_READY")
        if switches.read_once and task.reads:
            raise Refused(_SILENCE)
        solved = self.work.result(task)
        task.reads += 1
        self.audit.provider.read(account.key, task.id)
        return solved

    def _strike(self, call: Call) -> None:
        error = self.faults.error_for(call)
        if error is not None:
            raise Refused(error.code, as_text=error.as_text)


ACTIONS: Mapping[str, Callable[[Provider, Account, Fields], Answer]] = MappingProxyType(
    {
        "get": Provider.get,
        "get2": Provider.get_priced,
        "getbalance": Provider.balance,
        "threadsinfo": Provider.threads,
        "reportgood": Provider.report_good,
        "reportbad": Provider.report_bad,
    }
)


def _binding(rule: TaskRule, fields: Fields, switches: Switches) -> Binding:
    """Return what the token will be bound to. Raises Refused."""
    page = fields.get("pageurl")
    if (page or rule.has_page) and not _is_loopback_page(page):
        raise Refused("ERROR_PAGEURL")
    binding = rule.binding(fields, page)
    image = image_of(fields, switches)
    return binding if image is None else replace(binding, answer=text_of(image))


def _is_silent(switches: Switches, task: Task) -> bool:
    return switches.waiting is Waiting.EMPTY or (switches.waiting is Waiting.EMPTY_FIRST and task.polls == 1)


def _id_answer(task_id: str, switches: Switches) -> Answer:
    return Answer.of(int(task_id) if switches.ids is Ids.INTEGER else task_id)


def _type_of(fields: Fields) -> str:
    try:
        return rule_for(fields).type
    except Refused:
        return ""


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
            return _refusal(provider, query_fields(request), Refused("ERROR_BAD_PARAMETERS"))
        try:
            fields = await with_challenge(fields)
            found = endpoints[request.url.path](fields, request.method)
        except Refused as refused:
            return _refusal(provider, fields, refused)
        account = provider.account(fields)
        as_json = answers.is_json(account.switches(), fields.get("json") == "1")
        response = JSONResponse(dict(found.json)) if as_json else PlainTextResponse(found.plain)
        if fields.get("header_acao") == "1" and account.dialect.cross_origin:
            response.headers["Access-Control-Allow-Origin"] = "*"
        return response

    return Starlette(routes=[_GetAndPost(path, answer) for path in endpoints])


class _GetAndPost(Route):
    """A route without the HEAD that comes with GET: it would make a task, or read a token that can be read once."""

    def __init__(self, path: str, answer: Callable[[Request], Awaitable[Response]]) -> None:
        super().__init__(path, answer, methods=["GET", "POST"])
        self.methods = {"GET", "POST"}


def _refusal(provider: Provider, fields: Fields, refused: Refused) -> Response:
    """Answer with an error code, or with an empty body for none."""
    if not refused.code:
        return PlainTextResponse("")
    account = provider.account(fields)
    switches, code = account.switches(), account.spelled(refused.code)
    provider.audit.provider.codes[code] += 1
    if refused.as_text or not answers.is_json(switches, fields.get("json") == "1"):
        return PlainTextResponse(code)
    return JSONResponse(answers.error_body(code, switches))


async def describe(provider: Provider, scope: Scope, receive: Receive) -> tuple[Call, Receive]:
    """Return what faults may be limited to in a request, and a channel that delivers its body once more."""
    message = await receive()
    body = message.get("body", b"")
    request = Request(scope, replay(body, receive))
    try:
        fields = await read_fields(request)
    except UnreadableBody:
        fields = query_fields(request)
    return provider.call(scope["path"], scope["method"], fields), replay(body, receive)
