"""Every probe against a sound backend and against one with exactly its flaw: the confusion matrix, without a socket."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_captcha_qa import testing
from pytest_captcha_qa.conformance.catalogue import CATALOGUE
from pytest_captcha_qa.conformance.probe import Family
from pytest_captcha_qa.model.answer import Answer, Rule
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.draft import Wire
from pytest_captcha_qa.model.form import Effect, EnvKind, SubmitSpec, VerifySpec, VerifyVia
from pytest_captcha_qa.model.probing import ProbePolicy
from pytest_captcha_qa.model.probing import ProbeVerdict as V

from .conftest import FLAWLESS, KEY, Backend, token_of

OTHER = testing.form("login", sitekey="6Lanother")
TYPES = tuple(Family)


def _names(draft):
    return {name for name, _ in (*draft.pairs, *draft.query)}


def _has(draft, *tokens):
    return token_of(draft) in tokens


# What each flawed backend takes beside what the sound one takes.
FLAWS = {
    "M01": lambda b, d: d.method == "POST",
    "M02": lambda b, d: d.method == "POST" and not any(name.startswith("token") for name in _names(d)),
    "M03": lambda b, d: _has(d, "", "   ", "null", "undefined"),
    "M04": lambda b, d: isinstance(token_of(d), str) and token_of(d).strip() not in ("", "null", "undefined"),
    "M05": lambda b, d: token_of(d) in b.used,
    "M18": lambda b, d: "token[]" in _names(d),
    "M21": lambda b, d: d.wire is Wire.JSON and token_of(d) is None,
    "M22": lambda b, d: d.method == "GET",
    "M23": lambda b, d: d.target.path == "/api/signup",
    "M24": lambda b, d: d.target.path == "/signup/resend",
    "M25": lambda b, d: "X-Skip-Captcha" in d.headers,
    "M26": lambda b, d: "X-Forwarded-For" in d.headers,
}


def flawed(id):
    class Flawed(Backend):
        def accepts(self, draft):
            before = set(self.used)
            sound = super().accepts(draft)
            return sound or bool(FLAWS[id](_Then(before), draft))

    return Flawed()


class _Then:
    def __init__(self, used):
        self.used = used


def run_all(probing):
    return {id: verdict for family in TYPES for id, verdict in probing.verdicts(family).items()}


POLICY = ProbePolicy(siblings=("/api/signup",), flow=("/signup/resend",))


def test_a_sound_form_raises_nothing(probing, backend):
    found = run_all(probing(backend(), probes=POLICY))
    needing = [id for id, probe in CATALOGUE.items() if probe.needs_standin]
    # There is no other form, nothing shows an effect, this is not GeeTest, and there is no stand-in.
    unasked = dict.fromkeys(("M12", "M27", "M38", *needing), V.NOT_APPLICABLE)
    assert found == dict.fromkeys(CATALOGUE, V.SAFE) | unasked | {"M35": V.UNSAFE}  # nor is there a rate limit


@pytest.mark.parametrize("id", FLAWS)
def test_a_flaw_raises_its_own_probe_and_those_its_entry_implies(probing, id):
    found = run_all(probing(flawed(id), probes=POLICY))
    raised = {probe for probe, verdict in found.items() if verdict in (V.UNSAFE, V.CRASH)} - {"M35"}
    print(f"flaw {id}: {sorted(raised)}")
    assert id in raised
    assert raised <= {id, *CATALOGUE[id].implies}


@pytest.mark.parametrize("id", FLAWS)
def test_a_flaw_is_found_by_its_own_probe_alone(probing, id):
    assert probing(flawed(id), probes=POLICY).verdicts(CATALOGUE[id].family, id)[id] is V.UNSAFE


def test_a_form_that_refuses_everything_is_inconclusive(probing):
    form = probing(lambda draft: testing.refused(draft.target))
    found = form.verdicts(Family.TOKEN, "M02", "M03", "M04")
    assert set(found.values()) == {V.INCONCLUSIVE}


def test_a_remembered_success_is_found_and_a_documented_grace_is_none(probing, backend):
    class Remembering(backend):
        bare = 0

        def accepts(self, draft):
            self.bare += token_of(draft) is None
            return super().accepts(draft) or (token_of(draft) is None and self.bare > 1)  # the first is another visitor

    assert probing(Remembering()).verdicts(Family.REPLAY, "M36") == {"M36": V.UNSAFE}
    graced = probing(backend(), probes=ProbePolicy(grace=True))
    assert graced.verdicts(Family.REPLAY, "M36") == {"M36": V.NOT_APPLICABLE}


def test_forms_that_share_their_tokens_on_purpose_are_not_compared(probing, backend):
    group = ProbePolicy(sitekey_group="public")
    other = replace(OTHER, probes=group)
    assert probing(backend(), others=[other]).verdicts(Family.REPLAY, "M12") == {"M12": V.UNSAFE}
    assert probing(backend(), probes=group, others=[other]).verdicts(Family.REPLAY, "M12") == {"M12": V.NOT_APPLICABLE}


def test_one_token_at_once_in_a_backend_that_takes_it_twice(probing, backend):
    class Racy(backend):
        def accepts(self, draft):
            return isinstance(token_of(draft), str) and str(token_of(draft)).startswith("fake-token-of-")

    form = probing(Racy())
    (finding,) = form.family(Family.LOAD, "M06")
    assert finding.judged.verdict is V.UNSAFE
    assert "5 of 5 submits" in finding.judged.reason


def test_a_rate_limit_ends_the_posts(probing):
    posts = []

    def limiting(draft):
        posts.append(draft)
        return testing.refused(draft.target, 429 if len(posts) > 7 else 422)

    form = probing(limiting)
    (finding,) = form.family(Family.LOAD, "M35")
    assert finding.judged.verdict is V.SAFE
    assert len(posts) == 8
    assert sum(wait == pytest.approx(0.2) for wait in form.bench.stop.waits) == 7


def test_where_an_account_may_be_locked_three_tries_are_made(probing, backend):
    form = probing(backend(), effects=(Effect.LOCKOUT,))
    (finding,) = form.family(Family.LOAD, "M35")
    assert finding.judged.verdict is V.INCONCLUSIVE
    assert len(form.sent) == 3


def test_never_delete_and_only_documentation_addresses(probing, backend):
    form = probing(backend(), probes=POLICY)
    run_all(form)
    assert form.sent
    assert {draft.method for draft in form.sent} == {"POST", "GET", "PUT"}
    claimed = [draft.headers["X-Forwarded-For"] for draft in form.sent if "X-Forwarded-For" in draft.headers]
    assert len(claimed) == 2
    assert all(address.startswith("192.0.2.") for address in claimed)
    assert "DELETE" not in repr([draft.headers for draft in form.sent])


def test_a_refused_token_that_comes_back_in_the_page_is_found(probing):
    def echoing(draft):
        return replace(testing.refused(draft.target), text=f'captcha <input value="{token_of(draft)}">')

    (finding,) = probing(lambda d: testing.accepted() if _good(d) else echoing(d)).family(Family.TOKEN, "M29")
    assert finding.judged.verdict is V.UNSAFE
    assert "would be sent again" in finding.judged.reason


def test_a_form_that_comes_back_without_its_widget_is_found(probing):
    def bare(draft):
        return replace(testing.refused(draft.target), text='captcha <form><input name="email"></form>')

    assert probing(lambda d: testing.accepted() if _good(d) else bare(d)).verdicts(Family.TOKEN, "M29") == {
        "M29": V.UNSAFE
    }


def test_an_answer_that_tells_who_is_known_is_found(probing):
    known = set()

    def telling(draft):
        email = dict(draft.pairs)["email"]
        if _good(draft):
            known.add(email)
            return testing.accepted()
        told = f"captcha {'' if email in known else 'no '}account of {email}"
        return replace(testing.refused(draft.target), text=told)

    assert probing(telling).verdicts(Family.TOKEN, "M34") == {"M34": V.UNSAFE}
    assert probing(telling, effects=(Effect.MAIL,)).verdicts(Family.TOKEN, "M34") == {"M34": V.NOT_APPLICABLE}


def test_values_of_the_offline_mode_without_a_session(probing):
    def offline(draft):
        return testing.accepted() if _good(draft) or draft.sessionless else testing.refused()

    form = probing(offline, type=CaptchaType.GEETEST_V3)
    assert form.verdicts(Family.ROUTE, "M38") == {"M38": V.UNSAFE}


def _good(draft):
    return str(token_of(draft)).startswith("fake-token-of-")


# -- what is read


PAGES = {
    "M30": replace(FLAWLESS, policies=("script-src 'self'; frame-src 'none'",)),
    "M31": replace(FLAWLESS, bundles=(("/app.js", 'x={NEXT_PUBLIC_CAPTCHA_SECRET_KEY:"abcdefghij0123456789xyz"}'),)),
    "M33": replace(FLAWLESS, text=f"{FLAWLESS.text} error: timeout-or-duplicate"),
    "M39": replace(FLAWLESS, sitekeys=(None,)),
}


@pytest.mark.parametrize("id", PAGES)
def test_a_flaw_of_the_page_raises_its_own_probe(probing, backend, id):
    found = probing(backend(), page=PAGES[id]).verdicts(Family.PAGE)
    assert {probe for probe, verdict in found.items() if verdict is V.UNSAFE} == {id}


def test_test_keys_are_in_order_on_test_hosts_only(probing, backend):
    shown = replace(FLAWLESS, sitekeys=("6LeIxAcTAAAAAJcZVRqyHh71UMIEGNQ_MXjiZKhI",))
    form = probing(backend(), page=shown)
    assert form.verdicts(Family.PAGE, "M32") == {"M32": V.SAFE}
    form.bench.grants.kind = EnvKind.PRODUCTION
    assert form.verdicts(Family.PAGE, "M32") == {"M32": V.UNSAFE}


def test_a_secret_is_named_and_never_repeated(probing, backend):
    secret = "0x4" + "A" * 32
    page = replace(FLAWLESS, text=f"{FLAWLESS.text} <!-- {secret} {KEY} -->")
    (finding,) = probing(backend(), page=page).family(Family.PAGE, "M31")
    assert finding.judged.verdict is V.UNSAFE
    assert secret not in str(finding)


# -- who is probed at all


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"verify": VerifySpec(VerifyVia.ENDPOINT, url="/check")}, "verified via endpoint"),
        ({"effects": (Effect.PAYMENT,)}, "a success is a payment"),
    ],
)
def test_some_forms_are_only_read(probing, backend, changes, said):
    form = probing(backend(), **changes)
    findings = [finding for family in TYPES for finding in form.family(family)]
    kept = [finding for finding in findings if not finding.probe.reads_only]
    assert kept
    assert all(said in finding.judged.reason for finding in kept)
    assert not form.sent


def test_production_is_only_read(probing, backend):
    form = probing(backend())
    form.bench.grants.kind = EnvKind.PRODUCTION
    found = run_all(form)
    assert {id for id, verdict in found.items() if verdict is not V.NOT_APPLICABLE} == {
        "M30", "M31", "M32", "M33", "M39",
    }  # fmt: skip
    assert not form.sent
    assert not any(opened.posted for opened in form.bench.driver.opened)


FORM = f'<form method="post"><input name="email"><div data-sitekey="{KEY}"></div></form>'
PAGE = replace(FLAWLESS, text=FORM)
ANY_200 = Rule(status=(200,))


def shows(draft, text, status=200):
    return Answer(status, draft.target, text=text)


class SelfPosting(Backend):
    """Answers a good token with a text, and all else as its method has it: GET with the page, others with 422."""

    by_get = FORM

    def __call__(self, draft):
        if draft.method == "GET":
            return shows(draft, self.by_get)
        return shows(draft, "Thank you") if self.accepts(draft) else shows(draft, "no", 422)


def test_the_page_itself_is_no_success_where_the_rule_is_only_a_status(probing):
    form = probing(SelfPosting(), page=PAGE, success=ANY_200)
    assert form.verdicts(Family.ROUTE, "M22") == {"M22": V.SAFE}


def test_a_success_by_get_is_found_where_the_rule_is_only_a_status(probing):
    class ByGet(SelfPosting):
        by_get = "Thank you"

    assert probing(ByGet(), page=PAGE, success=ANY_200).verdicts(Family.ROUTE, "M22") == {"M22": V.UNSAFE}


def test_a_rule_that_takes_the_form_shown_again_for_a_success_finds_nothing_out(probing):
    class Again(SelfPosting):
        def __call__(self, draft):
            return shows(draft, "Thank you" if self.accepts(draft) else f"Are you human? {FORM}")

    form = probing(Again(), page=PAGE, success=ANY_200)
    found = form.family(Family.TOKEN, "M02", "M03")
    assert {finding.judged.verdict for finding in found} == {V.INCONCLUSIVE}
    assert "add to the rule what only a success shows" in found[0].judged.reason
    assert form.trial().harm.accepted == 6  # the control, and each doubtful one: they may have been accepted


def test_a_redirect_to_the_same_address_with_another_slash_serves_nothing(probing, backend):
    class Slashed(backend):
        def __call__(self, draft):
            if draft.target.path.endswith("/"):
                return Answer(308, draft.target, location=draft.target.join(draft.target.path.rstrip("/")))
            return super().__call__(draft)

    form = probing(Slashed(), refused=Rule(status=(422,)))
    assert form.verdicts(Family.ROUTE, "M22") == {"M22": V.SAFE}


def told(known, *others):
    """Return a backend whose answers to made-up tokens are about the person of the control, and about others."""

    class Telling(Backend):
        person = None

        def __call__(self, draft):
            email = dict(draft.pairs)["email"]
            if self.accepts(draft):
                self.person = email
                return testing.accepted(draft.target)
            self.count = getattr(self, "count", -1) + (email != self.person)
            return known(draft) if email == self.person else others[self.count % len(others)](draft)

    return Telling()


def refusing(text, status=422):
    return lambda draft: shows(draft, text, status)


@pytest.mark.parametrize(
    ("known", "others", "verdict"),
    [
        (
            refusing("no, reference 7f3a"),
            [refusing("no, reference abcd"), refusing("no, reference ef")],
            V.INCONCLUSIVE,
        ),
        (refusing("taken", 409), [refusing("no, reference abcd"), refusing("no, reference ef")], V.UNSAFE),
        (refusing("you have an account"), [refusing("no")], V.UNSAFE),
        (refusing("no"), [refusing("slow down", 429)], V.INCONCLUSIVE),
        (refusing("no"), [refusing("no")], V.SAFE),
    ],
    ids=["other each time", "status", "text", "limit", "alike"],
)
def test_what_differs_between_two_new_people_tells_nothing_of_a_known_one(probing, known, others, verdict):
    assert probing(told(known, *others)).verdicts(Family.TOKEN, "M34") == {"M34": verdict}


def test_a_script_that_gets_its_own_token_back_as_data_sends_it_nowhere(probing, backend):
    class Echoing(backend):
        def __call__(self, draft):
            answer = super().__call__(draft)
            return replace(answer, text=f'[{{"input": "{token_of(draft)}"}}]') if answer.status == 422 else answer

    assert probing(Echoing()).verdicts(Family.TOKEN, "M29") == {"M29": V.SAFE}


ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (f"<p>Donate to {ADDRESS} or 0x{'0' * 40}</p>", V.SAFE),
        (f'{{hcaptchaSecret: "{ADDRESS}"}}', V.UNSAFE),
        (f"HCAPTCHA_KEY={ADDRESS}", V.UNSAFE),
        ("0x4AAAAAAADnPIDROrmt1WwjSECRETSECRE", V.UNSAFE),
    ],
)
def test_an_address_for_money_is_no_secret_unless_it_is_called_one(probing, backend, text, verdict):
    form = probing(backend(), page=replace(FLAWLESS, text=FLAWLESS.text + text))
    assert form.verdicts(Family.PAGE, "M31") == {"M31": verdict}


def test_a_script_that_lies_elsewhere_may_load_the_widget(probing, backend):
    elsewhere = replace(FLAWLESS, scripts=("https://cdn.example/app.js",))
    assert probing(backend(), page=elsewhere).verdicts(Family.PAGE, "M39") == {"M39": V.INCONCLUSIVE}
    own = replace(elsewhere, scripts=("/app.js",), bundles=(("/app.js", "alert(1)"),))
    assert probing(backend(), page=own).verdicts(Family.PAGE, "M39") == {"M39": V.UNSAFE}


def test_the_page_that_an_app_starts_from_is_no_answer_of_its_api(probing, backend):
    class App(backend):
        def __call__(self, draft):
            if draft.method == "GET":
                return shows(draft, "<!doctype html><div id=root></div>")
            return super().__call__(draft)

    scripted = {"refused": Rule(status=(422,)), "fields": {}, "submit": SubmitSpec(url="/api/signup")}
    assert probing(App(), **scripted).verdicts(Family.ROUTE, "M22") == {"M22": V.SAFE}


def csrf_site(lets_by):
    """Return a backend that wants its CSRF value as Django does: in a field of a form, else in a header."""

    class Guarded(Backend):
        def __call__(self, draft):
            form = draft.method == "POST" and draft.wire is not Wire.JSON
            given = dict(draft.pairs) if form else draft.headers
            if given.get("csrfmiddlewaretoken" if form else "X-CSRFToken") != "c5rf":
                return shows(draft, "CSRF verification failed", 403)
            return testing.accepted(draft.target) if lets_by(draft) else super().__call__(draft)

    return Guarded()


@pytest.mark.parametrize(
    ("family", "id", "lets_by"),
    [
        (Family.ROUTE, "M22", lambda draft: draft.method == "PUT"),
        (Family.SHAPE, "M21", lambda draft: draft.wire is Wire.JSON),
    ],
    ids=["PUT", "JSON"],
)
def test_a_csrf_guard_hides_no_way_around_the_check(probing, family, id, lets_by):
    fields = {"email": "{identity.email}", "csrfmiddlewaretoken": "c5rf"}
    assert probing(csrf_site(lets_by), fields=fields).verdicts(family, id) == {id: V.UNSAFE}
    assert probing(csrf_site(lambda draft: False), fields=fields).verdicts(family, id) == {id: V.SAFE}


def test_a_crash_at_another_address_is_not_the_forms(probing, backend):
    class Slashless(backend):
        def __call__(self, draft):
            return shows(draft, "", 500) if draft.target.path.endswith("/") else super().__call__(draft)

    assert probing(Slashless()).verdicts(Family.ROUTE, "M22") == {"M22": V.INCONCLUSIVE}


def test_forms_that_no_backend_can_tell_apart_are_no_finding(probing, backend):
    alike = [replace(OTHER, sitekey=None)]
    form = probing(backend(), others=alike)
    found = {finding.probe.id: finding.judged for finding in form.family(Family.REPLAY)}
    assert found["M12"].verdict is V.INCONCLUSIVE
    assert "both forms show one sitekey" in found["M12"].reason
    assert found["M36"].verdict is V.SAFE
    assert form.trial().harm.accepted == 2
    told = probing(backend(), others=alike, action="signup")
    assert told.verdicts(Family.REPLAY, "M12") == {"M12": V.UNSAFE}


def test_an_address_in_capitals_that_skips_the_check_is_found(probing, backend):
    class Careless(backend):
        def __call__(self, draft):
            taken = testing.accepted(draft.target)
            return taken if draft.target.path == "/SIGNUP" else super().__call__(draft)

    assert probing(Careless()).verdicts(Family.ROUTE, "M22") == {"M22": V.UNSAFE}
