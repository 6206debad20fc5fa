"""Public fakes for your own tests: scripted provider, form and verifier, a manual clock, records in memory.

Their grants are marked as fake, so real adapters refuse them: nothing here can send anything.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pytest_captcha_qa import scope
from pytest_captcha_qa.engine import events
from pytest_captcha_qa.engine.admission import Admission
from pytest_captcha_qa.engine.obtaining import Obtainer
from pytest_captcha_qa.engine.ports import GrantSource, PollTimes, ThreadsInfo
from pytest_captcha_qa.engine.pulse import Beat
from pytest_captcha_qa.engine.recording import About
from pytest_captcha_qa.engine.services import Services
from pytest_captcha_qa.engine.solving import Solver
from pytest_captcha_qa.engine.stop import Deadline, Stop
from pytest_captcha_qa.errors import CaptchaQAError, ScopeDenied, UnknownName
from pytest_captcha_qa.model.answer import Answer, Rule
from pytest_captcha_qa.model.attempt import KeyMode, Verdict, VerifyStatus
from pytest_captcha_qa.model.captcha import Binding, CaptchaType, facts
from pytest_captcha_qa.model.draft import Draft, Wire
from pytest_captcha_qa.model.form import Challenge, EnvKind, FormSpec
from pytest_captcha_qa.model.identity import Identity
from pytest_captcha_qa.model.policy import AccountLimits
from pytest_captcha_qa.model.record import Line
from pytest_captcha_qa.model.token import TOKEN, Solution
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.scope import Probes, ScopeGrant, fake_grant
from pytest_captcha_qa.state.memory import MemoryLimits, MemoryStore

BASE_URL = Url.parse("http://127.0.0.1:9")


@dataclass
class ManualClock:
    """A clock that moves only when told, or when somebody waits on it; beats happen on its way."""

    seconds: float = 1_000_000.0
    _beats: list[_Beating] = field(default_factory=list, init=False, repr=False)

    def monotonic(self) -> float:
        """Return the current second."""
        return self.seconds

    utc = monotonic

    def advance(self, seconds: float) -> None:
        """Move on."""
        until = self.seconds + seconds
        while due := [each for each in self._beats if each.moment <= until]:
            first = min(due, key=lambda each: each.moment)
            self.seconds = first.moment
            first.go_on(self.seconds)
        self.seconds = until

    @contextmanager
    def during(self, beat: Beat) -> Iterator[None]:
        """Call the beat at once, and in the block as the clock reaches the moments it says: a Pulse without threads."""
        beating = _Beating(beat)
        beating.go_on(self.seconds)
        self._beats.append(beating)
        try:
            yield
        finally:
            self._beats.remove(beating)


@dataclass(eq=False)
class _Beating:
    """A beat, and the moment at which it is called next."""

    beat: Beat
    moment: float = 0.0

    def go_on(self, now: float) -> None:
        pause = self.beat()
        self.moment = float("inf") if pause is None else now + pause


class ManualStop(Stop):
    """A Stop whose waits move the clock instead of taking time; `waits` lists them in seconds."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock
        self.waits: list[float] = []

    def wait(self, seconds: float) -> None:
        """Move the clock on; raises Stopped as the real one does."""
        self.check()
        self.waits.append(seconds)
        self._clock.advance(seconds)
        self.check()


@dataclass
class MemoryRecords:
    """Keeps the lines of a run."""

    lines: list[Line] = field(default_factory=list)

    def write(self, line: Line) -> None:
        """Append one line."""
        self.lines.append(line)


@dataclass
class FakeGrants:
    """Grants everything on the origins it was given, with grants marked as fake."""

    origins: tuple[str, ...] = (str(BASE_URL.origin),)
    probes: Probes = Probes.ALL
    kind: EnvKind = EnvKind.DEMO

    def grant(self, url: Url) -> ScopeGrant:
        """Return a fake grant, or raise ScopeDenied for another origin."""
        if str(url.origin) not in self.origins:
            raise ScopeDenied(f"{url.origin} is not among the test's origins", reason="origin_not_listed")
        return fake_grant(url.origin, probes=self.probes, kind=self.kind)


Scripted = CaptchaQAError | Solution | str | None


@dataclass
class ScriptedProvider:
    """Answers submits and polls from two scripts; when a script is used up it accepts, and solves.

    A submit answers a task id or raises; a poll answers a Solution, None (not ready) or raises.
    """

    submits: Iterable[Scripted] = ()
    polls: Iterable[Scripted] = ()
    times: PollTimes = field(default_factory=lambda: PollTimes(first=1.0, interval=1.0))
    money: float | None = 10.0
    slots: ThreadsInfo | None = None
    told: list[Challenge] = field(default_factory=list)
    polled: list[str] = field(default_factory=list)
    reported: list[tuple[str, bool]] = field(default_factory=list)
    before_answer: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self._submits = iter(self.submits)
        self._polls = iter(self.polls)
        self._numbers = itertools.count(1)

    def polling(self, challenge: Challenge) -> PollTimes:
        """Return `times`."""
        return self.times

    def supports(self, challenge: Challenge) -> None:
        """Take every challenge."""

    def submit(self, challenge: Challenge, grant: ScopeGrant, deadline: Deadline) -> str:
        """Return the next scripted task id, or `task-N`."""
        self.told.append(challenge)
        self.before_answer()
        answer = next(self._submits, None)
        if isinstance(answer, CaptchaQAError):
            raise answer
        return answer if isinstance(answer, str) else f"task-{next(self._numbers)}"

    def poll(self, challenge: Challenge, task_id: str, deadline: Deadline) -> Solution | None:
        """Return the next scripted answer, or a token named after the task."""
        self.polled.append(task_id)
        self.before_answer()
        answer = next(self._polls, solution(task_id))
        if isinstance(answer, CaptchaQAError):
            raise answer
        return answer if isinstance(answer, Solution) else None

    def balance(self, deadline: Deadline) -> float | None:
        """Return `money`."""
        return self.money

    def threads(self, deadline: Deadline) -> ThreadsInfo | None:
        """Return `slots`."""
        return self.slots

    def report(self, task_id: str, *, good: bool, deadline: Deadline) -> bool:
        """Keep the report."""
        self.reported.append((task_id, good))
        return True


@dataclass
class ScriptedForm:
    """An opened form that answers from a script; when it is used up it accepts. `posted` lists what was sent.

    `sent` lists the drafts of probes; `judge`, if there is one, answers every submit in the script's place; `names`:
    the fields it has, None if it takes any.
    """

    challenge: Challenge
    page: Url
    answers: Iterable[Answer | CaptchaQAError] = ()
    posted: list[tuple[Solution | None, Mapping[str, str]]] = field(default_factory=list)
    judge: Callable[[Draft], Answer] | None = None
    sent: list[Draft] = field(default_factory=list)
    names: Collection[str] | None = None

    def __post_init__(self) -> None:
        self._answers = iter(self.answers)

    def check_fields(self, names: Iterable[str]) -> None:
        """Raise UnknownName for the first that is not among its `names`."""
        for name in names:
            if self.names is not None and name not in self.names:
                raise UnknownName.among("form field", name, self.names, where="the scripted form")

    def submit(
        self, solution: Solution | None, fields: Mapping[str, str], grants: GrantSource, deadline: Deadline
    ) -> Answer:
        """Return the next answer."""
        grants.grant(self.page)
        self.posted.append((solution, dict(fields)))
        return self.judge(self.draft(solution, fields)) if self.judge is not None else self._answered()

    def draft(self, solution: Solution | None, fields: Mapping[str, str]) -> Draft:
        """Return a draft of the fields, and of the solution in a field `token`."""
        token = [(TOKEN, solution.text)] if solution is not None else []
        return Draft("POST", self.page, Wire.FORM, (*fields.items(), *token), (TOKEN,))

    def send(self, draft: Draft, grants: GrantSource, deadline: Deadline) -> Answer:
        """Return the next answer, or what `judge` makes of the draft."""
        grants.grant(draft.target)
        self.sent.append(draft)
        return self.judge(draft) if self.judge is not None else self._answered()

    def _answered(self) -> Answer:
        answer = next(self._answers, accepted(self.page))
        if isinstance(answer, CaptchaQAError):
            raise answer
        return answer


@dataclass
class ScriptedDriver:
    """Opens every form as a ScriptedForm. `opened` lists them; `fails` is raised instead, if set.

    `judge` answers every submit in the script's place; `names`: the fields of each form, None if it takes any.
    """

    answers: Iterable[Answer | CaptchaQAError] = ()
    fails: CaptchaQAError | None = None
    judge: Callable[[Draft], Answer] | None = None
    names: Collection[str] | None = None
    opened: list[ScriptedForm] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._answers = iter(self.answers)

    def open(
        self, form: FormSpec, url: Url, grants: GrantSource, deadline: Deadline, identity: Identity
    ) -> ScriptedForm:
        """Return the opened form; all of them read one script."""
        grants.grant(url)
        if self.fails is not None:
            raise self.fails
        bound = facts(form.type).binding is Binding.PAGE
        data = {"challenge": f"load-{len(self.opened)}"} if bound else {}
        challenge = Challenge(form.type, form.sitekey or "sitekey", url, action=form.action, data=data)
        self.opened.append(ScriptedForm(challenge, url, self._answers, judge=self.judge, names=self.names))
        return self.opened[-1]


@dataclass
class ScriptedVerifier:
    """Answers with its verdicts one after the other, then with `pass`."""

    verdicts: Iterable[Verdict] = ()

    def __post_init__(self) -> None:
        self._verdicts = iter(self.verdicts)

    def verify(
        self,
        form: FormSpec,
        challenge: Challenge,
        solution: Solution | None,
        context: Mapping[str, str],
        grants: GrantSource,
        deadline: Deadline,
    ) -> Verdict:
        """Return the next verdict."""
        return next(self._verdicts, Verdict(VerifyStatus.PASS, "scripted"))


def solution(task_id: str) -> Solution:
    """Return a made-up token of realistic length."""
    return Solution({TOKEN: f"fake-token-of-{task_id}-".ljust(400, "x")})


def accepted(page: Url = BASE_URL) -> Answer:
    """Return the answer of a site that took the submit."""
    return Answer(303, page, location=page.join("/welcome"))


def refused(page: Url = BASE_URL, status: int = 422) -> Answer:
    """Return the answer of a site that refused it."""
    return Answer(status, page, text="captcha")


def form(slug: str = "signup", type: CaptchaType = CaptchaType.RECAPTCHA_V2, **changes: object) -> FormSpec:
    """Return a form whose success is a redirect to /welcome and whose refusal is a 422."""
    spec = FormSpec(slug, f"/{slug}", type, Rule((303,), location="/welcome*"), refused=Rule((422,)))
    return replace(spec, **changes)  # type: ignore[arg-type]


@dataclass
class Bench:
    """An engine whose every outside part is a fake: change the parts, then ask for `services()`."""

    forms: Iterable[FormSpec] = field(default_factory=lambda: [form()])
    provider: ScriptedProvider = field(default_factory=ScriptedProvider)
    driver: ScriptedDriver = field(default_factory=ScriptedDriver)
    verifier: ScriptedVerifier = field(default_factory=ScriptedVerifier)
    limits_rules: AccountLimits = field(default_factory=AccountLimits)
    clock: ManualClock = field(default_factory=ManualClock)
    records: MemoryRecords = field(default_factory=MemoryRecords)
    grants: FakeGrants = field(default_factory=FakeGrants)
    events: list[events.Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stop = ManualStop(self.clock)
        self.store = MemoryStore(clock=self.clock.monotonic)
        self.limits = MemoryLimits(clock=self.clock.monotonic)

    def services(self) -> Services:
        """Return the services of an attempt, all on this bench's clock."""
        admission = Admission("main", "main", "run", self.limits, self.limits_rules, self.clock, self.stop)
        solver = Solver(self.provider, self.store, admission, self.clock, self.stop, self.events.append)
        about = About(
            env="test", run_id="run", account="main", account_id="main", provider="scripted", key_mode=KeyMode.STANDIN,
            boundary="bench", worker_version="0",
        )  # fmt: skip
        return Services(
            about=about,
            page_of=lambda spec: BASE_URL.join(spec.path),
            forms={spec.name: spec for spec in self.forms},
            grants=self.grants,
            driver=self.driver,
            provider=self.provider,
            obtainer=Obtainer(self.store, solver, self.clock, self.stop, self.events.append),
            verifier_of=lambda spec: self.verifier,
            records=self.records,
            clock=self.clock,
            emit=self.events.append,
            identity=lambda: Identity.make("run"),
            pulse=self.clock,
        )


__all__ = [
    "BASE_URL",
    "Bench",
    "FakeGrants",
    "ManualClock",
    "ManualStop",
    "MemoryRecords",
    "ScriptedDriver",
    "ScriptedForm",
    "ScriptedProvider",
    "ScriptedVerifier",
    "accepted",
    "form",
    "refused",
    "scope",
    "solution",
]
