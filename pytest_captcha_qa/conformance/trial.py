"""What a probe can do with one form: see its page, send it something, get a good token. All within the harm rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

from pytest_captcha_qa.conformance.harm import MOST_ACCEPTED, Harm
from pytest_captcha_qa.conformance.judge import Harmless, Judged, inconclusive, judge, never, told_apart, worst
from pytest_captcha_qa.conformance.patience import Patience
from pytest_captcha_qa.conformance.place import Place
from pytest_captcha_qa.conformance.vendor import Vendor
from pytest_captcha_qa.engine.attempt import Attempt
from pytest_captcha_qa.engine.ports import OpenedForm
from pytest_captcha_qa.engine.services import Services
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import CaptchaQAError, DeadlineExceeded, PageError, Stopped, TargetUnavailable
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.attempt import AttemptRequest, Fault, KeyMode, Purpose
from pytest_captcha_qa.model.draft import Draft, Edited
from pytest_captcha_qa.model.form import Challenge, EnvKind, FormSpec
from pytest_captcha_qa.model.identity import Identity
from pytest_captcha_qa.model.probing import ProbeVerdict
from pytest_captcha_qa.model.seen import SeenPage
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Url

Look = Callable[[FormSpec, Deadline], SeenPage]
Edit = Callable[[Draft], Draft]
Make = Callable[[OpenedForm], Solution]

_PAGE_SECONDS = 60.0
_LOOK_EVERY = 1.0
MADE_UP = "0.Kq3xZv" + "Wm9yZ2VkLXRva2VuLW9mLWEtcHJvYmU" * 12
"""As long, and of the same alphabet, as real tokens; nobody has issued it."""

_TAKEN = "taken"
_REFUSED = "refused"
_SILENT = (TargetUnavailable, DeadlineExceeded)
_UNREAD = (PageError, *_SILENT)
_THEIRS = frozenset({Fault.SCOPE, Fault.CONFIG})


@dataclass(frozen=True)
class Lab:
    """What the probes of one process need; made by wiring.

    `new_services`: services whose attempts share one browser session, a new one with each call; `look` reads a page;
    `session`: what the processes of this run have in common; `place`: this process's part in the order at the site;
    `vendor`: the stand-in, if the account is one.
    """

    new_services: Callable[[], Services]
    look: Look
    session: str
    place: Place
    vendor: Vendor | None = None


@dataclass
class Control:
    """A good token on a sound submit: `failed` says why it was not accepted, if so; `silent`: nobody answered."""

    failed: str | None
    token: Solution | None = None
    services: Services | None = None
    challenge: Challenge | None = None
    identity: Identity | None = None
    silent: bool = False


@dataclass
class Trial:
    """The probes of one family on one form, in one test; `stops_at_limits`: no submit is sent again after a limit."""

    lab: Lab
    form: FormSpec
    nodeid: str
    read_only: bool = False
    stops_at_limits: bool = False
    _numbers: count[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.services = self.lab.new_services()
        self.limits = self.services.obtainer.solver.admission.limits
        self.harm = Harm(self.limits, session=self.lab.session, slug=self.form.slug)
        self._patience = Patience(self.services.obtainer.stop)
        self._control: Control | None = None
        self._seen: SeenPage | None = None
        self._bare: Judged | None = None

    @property
    def key_mode(self) -> KeyMode:
        """What the account's tokens prove."""
        return self.services.about.key_mode

    @property
    def declares_effects(self) -> bool:
        """Whether the team has said what a success causes."""
        return bool(self.form.effects)

    @property
    def kind(self) -> EnvKind:
        """How much care the environment needs; raises ScopeDenied where the page is not authorised."""
        return self.services.grants.grant(self.url).kind

    @property
    def url(self) -> Url:
        """The form's page."""
        return self.services.page_of(self.form)

    def seen(self) -> SeenPage:
        """Return the form's page; it is read once.

        Raises:
            CaptchaQAError: it cannot be read.
        """
        if self._seen is None:
            self._seen = self.lab.look(self.form, Deadline(_PAGE_SECONDS, what="reading the form's page"))
        return self._seen

    def post(
        self,
        called: str,
        edit: Edit,
        *,
        token: Solution | Make | None = None,
        harmless: Harmless = never,
        services: Services | None = None,
        effect: bool = False,
        identity: Identity | None = None,
    ) -> Judged:
        """Return what the form makes of its own submit, changed by `edit`, which it must refuse.

        `token`: what the draft holds before the change, or what makes it of the opened page;
        `services`: those whose session is used, else a new one's; `identity`: who is said to submit it, else somebody
        new; `effect`: whether a refused submit is unsafe, too, if it has had the effect that `confirm` shows.
        """
        assert not self.read_only, "a family that only reads sends nothing"
        if not self.harm.reserve():
            return inconclusive(f"not sent: {MOST_ACCEPTED} submits of this form were accepted in this run")
        used = services or self.lab.new_services()
        send = partial(self._sent, Edited(called, edit), token, harmless, used, identity or used.identity())
        attempt, judged = send()
        if not (judged.safe or self.stops_at_limits) and self._patience.waited(attempt.answer):
            attempt, judged = send()
        if effect and judged.safe:
            judged = self._with_effect(judged, attempt)
        if judged.accepted and attempt.answer is not None:
            judged = self._told_apart(judged, elsewhere=harmless is not never)
        if not (judged.accepted or judged.doubtful):
            self.harm.give_back()
        return judged

    def _told_apart(self, judged: Judged, *, elsewhere: bool) -> Judged:
        try:
            page = self.seen()
        except _UNREAD:
            return judged
        return told_apart(self.form, judged, page, elsewhere=elsewhere)

    def shows_the_form(self, answer: Answer) -> bool:
        """Return whether an answer is the page with the form: it holds its sitekeys, or the names of its fields."""
        marks = [*self.seen().named_keys, *(f'name="{name}"' for name in self.form.fields)]
        return answer.status == 200 and any(mark in answer.text for mark in marks)

    def bare(self) -> Judged:
        """Return what the form makes of its submit without any captcha field; it is sent once in a family."""
        if self._bare is None:
            self._bare = self.post("no captcha field", lambda draft: draft.without_token())
            if self._bare.http_status is not None:
                self.harm.note("bare", _TAKEN if self._bare.accepted else _REFUSED)
        return self._bare

    def takes_bare(self) -> bool:
        """Return whether the form takes a submit without any captcha field; it is sent once a run."""
        known = self.harm.noted("bare")
        return self.bare().accepted if known is None else known == _TAKEN

    def takes_made_up(self) -> bool:
        """Return whether the form takes a made-up token; it is sent once a run, if nobody has yet."""
        known = self.harm.noted("made up")
        if known is None:
            judged = self.post("a made-up token", lambda draft: draft.with_token(MADE_UP))
            known = _TAKEN if judged.accepted else _REFUSED
            if judged.http_status is not None:
                self.harm.note("made up", known)
        return known == _TAKEN

    def each(self, tries: Iterable[Callable[[], Judged]]) -> Judged:
        """Return what several tries come to; nothing more is sent after one that was not safe nor doubtful."""
        done: list[Judged] = []
        for attempt in tries:
            done.append(attempt())
            if not (done[-1].safe or done[-1].doubtful):
                break
        return worst(done)

    def _sent(
        self, edited: Edited, token: Solution | Make | None, harmless: Harmless, services: Services, identity: Identity
    ) -> tuple[Attempt, Judged]:
        attempt = Attempt(self._request(self.form), services, identity=identity)
        sent: list[Draft] = []

        def edit(draft: Draft) -> Draft:
            sent.append(edited.edit(draft))
            return sent[-1]

        with attempt:
            attempt.start()
            try:
                opened = attempt.open()
                given = token(opened) if callable(token) else token
                attempt.submit_expecting_refusal(given, edited=Edited(edited.called, edit))
            except PageError as error:
                attempt.record(error)
                return attempt, inconclusive(error.message)
        assert attempt.answer is not None
        judged = judge(self.form, attempt.answer, edited.called, harmless)
        exchange = f"{sent[-1].method} {sent[-1].target.path} with {edited.called}: {attempt.answer.status}"
        return attempt, replace(judged, exchange=exchange)

    def _with_effect(self, judged: Judged, attempt: Attempt) -> Judged:
        """Return it as unsafe if the effect that `confirm` shows comes within its seconds."""
        confirm, services = self.form.confirm, self.services
        assert confirm is not None, "the probe asks for it"
        deadline = Deadline(confirm.within, what="looking for an effect", now=services.clock.monotonic)
        while services.effects.lacking(attempt.visit.effect_question, deadline) is not None:
            if deadline.remaining() <= _LOOK_EVERY:
                return judged.saying(f"{judged.reason} and had no effect within {confirm.within:g} s")
            self.wait(_LOOK_EVERY)
        said = judged.saying(f"{judged.reason}, and has had its effect all the same", ProbeVerdict.UNSAFE)
        return replace(said, accepted=True)

    def wait(self, seconds: float) -> None:
        """Wait that long; raises Stopped if the run ends meanwhile."""
        self.services.obtainer.stop.wait(seconds)

    def control(self) -> Control:
        """Return the family's positive control; it is made once.

        Raises:
            CaptchaQAError: the target is not authorised, or the configuration cannot work.
        """
        if self._control is None:
            self._control = self._controlled()
        return self._control

    def _controlled(self) -> Control:
        if not self.harm.reserve():
            return Control(f"{MOST_ACCEPTED} submits of this form were accepted in this run, so it was not sent")
        services = self.lab.new_services()
        try:
            with Attempt(self._request(self.form), services, identity=services.identity()) as attempt:
                attempt.start()
                attempt.open()
                token = attempt.obtain()
                outcome = attempt.submit()
        except CaptchaQAError as error:
            self.harm.give_back()
            if error.fault in _THEIRS or isinstance(error, Stopped):
                raise
            return Control(error.message, silent=isinstance(error, _SILENT))
        if outcome.ok:
            return Control(None, token.replayed(), services, attempt.visit.page.challenge, attempt.identity)
        self.harm.give_back()
        return self._controlled() if self._patience.waited(attempt.answer) else Control(outcome.verdict.reason)

    def fresh(self) -> Solution:
        """Return a good token of this form, spent in the store and never sent to anybody; raises as `fresh_of`."""
        return self.fresh_of(self.form)[1]

    def fresh_of(self, form: FormSpec) -> tuple[Challenge, Solution]:
        """Return what a form's page shows, and a good token of it.

        Raises:
            CaptchaQAError: there is none to be had.
        """
        services = self.lab.new_services()
        with Attempt(self._request(form), services, identity=services.identity()) as attempt:
            attempt.start()
            attempt.open()
            return attempt.visit.page.challenge, attempt.obtain().take()

    @property
    def others(self) -> list[FormSpec]:
        """The other forms of this type whose tokens this form must not take."""
        group = self.form.probes.sitekey_group
        others = [form for form in self.services.forms.values() if form.slug != self.form.slug and not form.variant]
        alike = [form for form in others if form.type is self.form.type and form.verify.via.submits_form]
        return [form for form in alike if group is None or form.probes.sitekey_group != group]

    def _request(self, form: FormSpec) -> AttemptRequest:
        subject = f"{self.nodeid} probe {next(self._numbers)}"
        return AttemptRequest(form.name, subject, purpose=Purpose.PROBE, nodeid=self.nodeid)
