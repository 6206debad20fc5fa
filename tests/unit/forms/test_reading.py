"""What is read of a page: the widget, its values, the form around it, or what is wrong."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_captcha_qa.errors import AccessNotConfigured, CaptchaQAError, ConfigError, PageError, ScopeDenied
from pytest_captcha_qa.forms.naming import describe_form
from pytest_captcha_qa.forms.reading import read_page
from pytest_captcha_qa.forms.scripts import SCRIPTS
from pytest_captcha_qa.forms.widgets import WIDGETS
from pytest_captcha_qa.model.answer import Rule
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import FormSpec, WidgetSpec
from pytest_captcha_qa.model.url import Url

PAGES = Path(__file__).parents[3] / "fixtures" / "pages"
URL = Url.parse("https://shop.example/signup?utm=1")
V2_KEY = "6LcSANDBOXv2sitekeyAAAAAAAAAAAAAAAAAAAAA"
V3_KEY = "6LcSANDBOXv3sitekeyAAAAAAAAAAAAAAAAAAAAA"
TURNSTILE_KEY = "0x4AAAAAAASANDBOXlogin01"
GT = "5a9db0c4ca7a00000000000000000001"
CHALLENGE = "0123456789abcdef0123456789abcdef"

V2 = CaptchaType.RECAPTCHA_V2
INVISIBLE = CaptchaType.RECAPTCHA_V2_INVISIBLE
V3 = CaptchaType.RECAPTCHA_V3
TURNSTILE = CaptchaType.TURNSTILE
HCAPTCHA = CaptchaType.HCAPTCHA
GEETEST = CaptchaType.GEETEST_V3
GEETEST_V4 = CaptchaType.GEETEST_V4
ENTERPRISE = CaptchaType.RECAPTCHA_ENTERPRISE
FRIENDLY = CaptchaType.FRIENDLY_V2
ALTCHA = CaptchaType.ALTCHA
IMAGE = CaptchaType.IMAGE
E1_KEY = "6LcSANDBOXe1sitekeyAAAAAAAAAAAAAAAAAAAAA"
GT4 = "5a9db0c4ca7a00000000000000000004"
GEETEST_V4_PARTS = ("captcha_id", "lot_number", "pass_token", "gen_time", "captcha_output")
FRIENDLY_KEY = "FCMSANDBOX000001"


@pytest.mark.parametrize("table", [WIDGETS, SCRIPTS], ids=["widgets", "scripts"])
def test_every_type_has_an_entry_or_an_explicit_none(table):
    assert set(table) == set(CaptchaType)


def test_every_type_has_a_fixture_page():
    pages = {path.stem for path in PAGES.glob("*.html")}
    assert [kind for kind in CaptchaType if not any(page.startswith(kind) for page in pages)] == []


@pytest.mark.parametrize(
    ("page", "kind", "sitekey", "fields"),
    [
        ("recaptcha_v2", V2, V2_KEY, {"g-recaptcha-response": "token"}),
        ("recaptcha_v2_rendered", V2, V2_KEY, {"g-recaptcha-response": "token"}),
        ("recaptcha_v2_invisible_button", INVISIBLE, V2_KEY, {"g-recaptcha-response": "token"}),
        ("recaptcha_v2_invisible_div", INVISIBLE, V2_KEY, {"g-recaptcha-response": "token"}),
        ("recaptcha_v3_script", V3, V3_KEY, {"g-recaptcha-response": "token"}),
        ("recaptcha_v3_variable", V3, V3_KEY, {"recaptcha_token": "token"}),
        ("recaptcha_v3_rails", V3, V3_KEY, {"g-recaptcha-response-data[signup]": "token"}),
        ("recaptcha_v3_bound", V3, V3_KEY, {"g-recaptcha-response": "token"}),
        ("recaptcha_v3_no_action", V3, V3_KEY, {"g-recaptcha-response": "token"}),
        ("recaptcha_v3_own_field", V3, V3_KEY, {"captcha": "token"}),
        ("turnstile", TURNSTILE, TURNSTILE_KEY, {"cf-turnstile-response": "token"}),
        ("turnstile_renamed", TURNSTILE, TURNSTILE_KEY, {"human": "token"}),
        ("turnstile_rendered", TURNSTILE, TURNSTILE_KEY, {"human": "token"}),
        (
            "hcaptcha",
            HCAPTCHA,
            "10000000-ffff-ffff-ffff-000000000001",
            {"h-captcha-response": "token", "g-recaptcha-response": "token"},
        ),
        (
            "geetest_v3_data",
            GEETEST,
            GT,
            {f"geetest_{part}": part for part in ("challenge", "validate", "seccode")},
        ),
        (
            "geetest_v3_script",
            GEETEST,
            GT,
            {f"geetest_{part}": part for part in ("challenge", "validate", "seccode")},
        ),
        ("recaptcha_enterprise", ENTERPRISE, V2_KEY, {"g-recaptcha-response": "token"}),
        ("recaptcha_enterprise_invisible", ENTERPRISE, E1_KEY, {"g-recaptcha-response": "token"}),
        ("recaptcha_enterprise_script", ENTERPRISE, E1_KEY, {"g-recaptcha-response": "token"}),
        ("recaptcha_enterprise_rendered", ENTERPRISE, E1_KEY, {"g-recaptcha-response": "token"}),
        ("geetest_v4_script", GEETEST_V4, GT4, {part: part for part in GEETEST_V4_PARTS}),
        ("geetest_v4_data", GEETEST_V4, GT4, {part: part for part in GEETEST_V4_PARTS}),
        ("friendly_v2", FRIENDLY, FRIENDLY_KEY, {"frc-captcha-response": "token"}),
        ("friendly_v2_renamed", FRIENDLY, FRIENDLY_KEY, {"human": "token"}),
        ("friendly_v2_created", FRIENDLY, FRIENDLY_KEY, {"human": "token"}),
        ("altcha", ALTCHA, "", {"altcha": "token"}),
        ("altcha_inline", ALTCHA, "", {"human": "token"}),
        ("altcha_v3", ALTCHA, "", {"altcha": "token"}),
        ("altcha_v3_inline", ALTCHA, "", {"altcha": "token"}),
        ("image", IMAGE, "", {"captcha_answer": "token"}),
        ("image_django", IMAGE, "", {"captcha_1": "token"}),
        ("image_inline", IMAGE, "", {"code": "token"}),
        ("noscript_fallback", V2, V2_KEY, {"g-recaptcha-response": "token"}),
        ("uppercase", V2, V2_KEY, {"g-recaptcha-response": "token"}),
        ("xhtml", V2, V2_KEY, {"g-recaptcha-response": "token"}),
    ],
)
def test_each_way_to_show_a_widget_is_read(html, spec, page, kind, sitekey, fields):
    reading = read_page(html(page), URL, spec(kind))

    assert (reading.challenge.type, reading.challenge.sitekey) == (kind, sitekey)
    assert reading.challenge.page == URL
    assert dict(reading.token_fields) == fields
    assert (reading.form.get("action") or "") == "/signup"


@pytest.mark.parametrize(
    ("page", "kind", "action", "cdata"),
    [
        ("turnstile", TURNSTILE, "login", "visit-17"),
        ("turnstile_rendered", TURNSTILE, "login", "visit-17"),
        ("recaptcha_v3_script", V3, "signup", None),
        ("recaptcha_v3_variable", V3, "users/signup", None),
        ("recaptcha_v3_bound", V3, "signup", None),
        ("recaptcha_v3_no_action", V3, None, None),
        ("recaptcha_v2", V2, None, None),
        ("recaptcha_enterprise_script", ENTERPRISE, "signup", None),
        ("recaptcha_enterprise_rendered", ENTERPRISE, "signup", None),
        ("recaptcha_enterprise", ENTERPRISE, None, None),
    ],
)
def test_action_and_cdata_are_what_the_page_shows(html, spec, page, kind, action, cdata):
    challenge = read_page(html(page), URL, spec(kind)).challenge

    assert (challenge.action, challenge.cdata) == (action, cdata)


@pytest.mark.parametrize("page", ["geetest_v3_data", "geetest_v3_script"])
def test_a_geetest_challenge_is_part_of_what_the_provider_is_told(html, spec, page):
    assert dict(read_page(html(page), URL, spec(GEETEST)).challenge.data) == {
        "gt": GT,
        "challenge": CHALLENGE,
    }


@pytest.mark.parametrize(
    ("page", "data"),
    [
        ("recaptcha_enterprise", {}),
        ("recaptcha_enterprise_rendered", {}),
        ("recaptcha_enterprise_invisible", {"invisible": "1"}),
        ("recaptcha_enterprise_script", {"version": "v3"}),
    ],
)
def test_an_enterprise_page_tells_which_kind_of_key_it_has(html, spec, page, data):
    assert dict(read_page(html(page), URL, spec(ENTERPRISE)).challenge.data) == data


@pytest.mark.parametrize(
    ("page", "kind", "data"),
    [
        ("altcha", ALTCHA, {"challenge_url": "/altcha/challenge?form=signup"}),
        ("altcha_v3", ALTCHA, {"challenge_url": "/altcha/challenge"}),
        ("image", IMAGE, {"image_url": "/captcha/image?id=5f3a"}),
    ],
)
def test_a_page_may_show_only_where_the_challenge_is(html, spec, page, kind, data):
    assert dict(read_page(html(page), URL, spec(kind)).challenge.data) == data


@pytest.mark.parametrize(
    "place",
    [
        "document.getElementById('human')",
        'document.querySelector("#human")',
        "document .querySelector( '#human' )",
        "'.person'",
    ],
)
def test_a_script_may_render_into_an_element_it_looked_up(html, spec, place):
    text = html("turnstile_rendered").replace('id="human"', 'class="a person" id="human"')
    assert 'class="a person"' in text
    assert "render('#human'," in text

    assert read_page(text.replace("'#human'", place), URL, spec(TURNSTILE)).challenge.sitekey == TURNSTILE_KEY


@pytest.mark.parametrize(
    ("page", "kind", "name", "start"),
    [
        ("altcha_inline", ALTCHA, "challenge_json", '{"algorithm":"SHA-256"'),
        ("altcha_v3_inline", ALTCHA, "challenge_json", '{"algorithm":"SHA-256"'),
        ("image_inline", IMAGE, "image", "data:image/png;base64,iVBORw0KGgo"),
    ],
)
def test_a_page_may_show_the_challenge_itself(html, spec, page, kind, name, start):
    ((found, text),) = read_page(html(page), URL, spec(kind)).challenge.data.items()

    assert (found, text[: len(start)]) == (name, start)


def test_an_image_that_looks_like_no_captcha_is_one_if_it_is_chosen(html, spec):
    form = spec(IMAGE, widget=WidgetSpec("#picture"), token_field="seen")
    reading = read_page(html("image_unmarked"), URL, form)

    assert dict(reading.challenge.data) == {"image_url": "/picture.php"}
    assert dict(reading.token_fields) == {"seen": "token"}


def test_the_configured_action_stands_in_for_one_the_page_does_not_show(html, spec):
    challenge = read_page(html("recaptcha_v3_no_action"), URL, spec(V3, action="signup", min_score=0.7)).challenge

    assert (challenge.action, challenge.min_score) == ("signup", 0.7)


def test_the_configured_action_chooses_among_the_calls_of_a_script(html, spec):
    page = html("recaptcha_v3_two_actions")

    assert read_page(page, URL, spec(V3, action="invite")).challenge.action == "invite"
    with pytest.raises(ConfigError, match=r"has 2 recaptcha_v3 widgets.*'signup'.*'invite'"):
        read_page(page, URL, spec(V3))


@pytest.mark.parametrize(
    ("page", "kind", "more", "words"),
    [
        ("no_widget", V2, {}, "has no recaptcha_v2 widget; it has no widget at all, scripts of recaptcha_v2"),
        ("no_widget", V2, {}, "form#signup \\(action '/signup'\\), form#newsletter"),
        ("turnstile", V2, {}, "no recaptcha_v2 widget; it has turnstile at div.cf-turnstile in form#signup"),
        ("recaptcha_v2_invisible_div", V2, {}, "recaptcha_v2_invisible at div.g-recaptcha"),
        ("recaptcha_v3_bound", INVISIBLE, {}, "it has recaptcha_v3 at button.g-recaptcha"),
        ("recaptcha_v3_own_field", INVISIBLE, {}, "it has recaptcha_v3 at input\\[name=captcha\\] in form#signup"),
        ("recaptcha_enterprise", V2, {}, "it has recaptcha_enterprise at div.g-recaptcha in form#signup"),
        ("recaptcha_v2", ENTERPRISE, {}, "no recaptcha_enterprise widget; it has recaptcha_v2 at div.g-recaptcha"),
        ("friendly_v1", FRIENDLY, {}, "no friendly_v2 widget; it has no widget at all"),
        ("altcha_nothing", ALTCHA, {}, "the altcha widget on .* has no value for challenge"),
        ("image_unmarked", IMAGE, {}, "no image widget; it has no widget at all"),
        ("altcha", IMAGE, {}, "no image widget; it has altcha at altcha-widget in form#signup .* \\(no sitekey\\)"),
        ("widget_in_comment", V2, {}, "no widget at all"),
        ("widget_in_template", V2, {}, "no widget at all"),
        ("widget_in_noscript", V2, {}, "no widget at all"),
        ("no_sitekey", TURNSTILE, {}, "no usable sitekey \\(it is 'undefined'\\)"),
        ("geetest_v3_no_challenge", GEETEST, {}, "no value for challenge"),
        ("turnstile", TURNSTILE, {"sitekey": "0x4AAAold"}, f"sitekey {TURNSTILE_KEY}.*expects 0x4AAAold"),
        (
            "turnstile",
            TURNSTILE,
            {"action": "signup"},
            "action 'login'; forms.signup.action expects 'signup'",
        ),
        ("cut_off", V2, {}, "is cut off: its HTML ends before form#signup"),
        ("cut_off_in_tag", V2, {}, "no widget at all.*its HTML is cut off"),
    ],
)
def test_a_broken_page_is_named_with_what_was_found(html, spec, page, kind, more, words):
    with pytest.raises(PageError, match=words) as caught:
        read_page(html(page), URL, spec(kind, **more))

    assert "https://shop.example/signup" in str(caught.value)
    assert "utm" not in str(caught.value)


@pytest.mark.parametrize(
    ("page", "kind", "words"),
    [
        ("two_widgets", V2, "2 recaptcha_v2 widgets.*in form#signup.*in form#login.*widget.selector"),
        ("decoy_form", V2, "in form#trap.*in form#signup"),
        ("recaptcha_v2_variable", V2, "from a variable of a script"),
        ("geetest_v3_ajax", GEETEST, "from a variable of a script"),
        ("recaptcha_v3_ambiguous", V3, "2 forms could be meant: form#signup.*form#newsletter"),
        ("widget_outside_form", V2, "2 forms could be meant"),
        ("geetest_v4_variable", GEETEST_V4, "from a variable of a script"),
        ("image_two_fields", IMAGE, "nothing tells which field of form#signup .* with forms.signup.token_field"),
    ],
)
def test_what_only_the_configuration_can_settle_is_a_configuration_error(html, spec, page, kind, words):
    with pytest.raises(ConfigError, match=words):
        read_page(html(page), URL, spec(kind))


@pytest.mark.parametrize(
    ("page", "kind", "selector", "form_id"),
    [
        ("two_widgets", V2, "#login .g-recaptcha", "login"),
        ("two_widgets", V2, "form#signup", "signup"),
        ("decoy_form", V2, "#signup > .g-recaptcha", "signup"),
        ("recaptcha_v3_ambiguous", V3, "#newsletter", "newsletter"),
        ("widget_outside_form", V2, "#signup, .g-recaptcha", "signup"),
    ],
)
def test_a_selector_chooses_widget_and_form(html, spec, page, kind, selector, form_id):
    form = spec(kind, widget=WidgetSpec(selector))

    assert read_page(html(page), URL, form).form.get("id") == form_id


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ("#absent", "chooses no recaptcha_v2 widget.*in form#signup"),
        ("form[", "is no CSS selector: 'form\\['"),
    ],
)
def test_a_selector_that_chooses_nothing_says_so(html, spec, selector, words):
    with pytest.raises(ConfigError, match=words):
        read_page(html("two_widgets"), URL, spec(V2, widget=WidgetSpec(selector)))


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("nested_tables", ("csrf_token", "email", "name", "go")),
        ("form_opened_in_cell", ("csrf_token", "email", "go")),
        ("form_in_form", ("csrf_token", "email", "go")),
        ("form_attributes", ("csrf_token", "email", "name", "go")),
        ("form_left_open", ("csrf_token", "email", "name", "password", "go")),
        ("noscript_fallback", ("csrf_token", "email", "name", "password", "go")),
    ],
)
def test_controls_belong_to_the_form_a_browser_would_give_them(html, spec, page, names):
    reading = read_page(html(page), URL, spec(V2))

    assert reading.markup.control_names(reading.form) == names


@pytest.mark.parametrize(
    ("page", "fields", "redirected", "error"),
    [
        ("login", {}, True, AccessNotConfigured),
        ("login", {"email": "x"}, True, AccessNotConfigured),
        ("login", {"email": "x"}, False, AccessNotConfigured),
        ("login", {}, False, PageError),
        ("login", {"username": "x"}, False, PageError),
        ("no_widget", {"email": "x", "password": "x"}, True, PageError),
        ("no_widget", {"email": "x", "phone": "x"}, True, AccessNotConfigured),
        ("no_widget", {"email": "x", "phone": "x"}, False, PageError),
    ],
)
def test_a_login_in_front_is_told_from_a_form_that_lost_its_widget(html, spec, page, fields, redirected, error):
    with pytest.raises(error):
        read_page(html(page), URL, spec(V2, fields=fields), redirected=redirected)


def test_a_login_is_told_also_by_one_that_shows_an_image(html, spec):
    page = html("login").replace("</form>", '<img src="/captcha.png"><input name="captcha"></form>', 1)

    with pytest.raises(AccessNotConfigured):
        read_page(page, URL, spec(V2, fields={"email": "x"}), redirected=True)


def test_frames_are_named_as_a_place_that_is_not_read(spec):
    with pytest.raises(PageError, match="what its frames hold is not read"):
        read_page("<iframe src=/form></iframe>", URL, spec(V2))


def test_a_base_that_cannot_mean_one_thing_is_refused(html, spec):
    with pytest.raises(ScopeDenied, match=r"<base> of https://shop.example/signup is refused"):
        read_page(html("base_refused"), URL, spec(TURNSTILE))


def test_foreign_text_in_messages_is_short_escaped_and_without_user_info():
    reading = read_page(
        f'<form id="a\nb" action="https://user:pass@shop.example/{"x" * 200}">'
        f'<div class="g-recaptcha" data-sitekey="{V2_KEY}"></div></form>',
        URL,
        FormSpec("signup", "/signup", V2, Rule()),
    )
    words = describe_form(reading.form)

    assert "pass" not in words
    assert "\n" not in words
    assert len(words) < 200


_PIECES = st.sampled_from(
    [
        *("<form", "</form>", "<form action=/x method=post>", "<table>", "<td>", "</td>", "<select>", "</"),
        *(
            f'<div class="g-recaptcha" data-sitekey="{V2_KEY}">',
            "<div class=g-recaptcha>",
            "<textarea name=a>",
        ),
        *("<!--", "-->", "<![CDATA[", "<!doctype", "<![", "<?xml", "<script>", "</script>", "<p id=a>"),
        *("grecaptcha.render('a',{sitekey:", f'grecaptcha.execute("{V3_KEY}",{{action:'),
        *("<base href='//[", "<base href=/a>", "<input name=b form=c>", "<option selected>", "<template>"),
        *("<meta http-equiv=refresh content='0;url=", "<noscript>", "'", '"', "{", "}", "&#0;", "\x00"),
        *(
            "initGeetest4({captchaId:'1",
            "<altcha-widget challenge='{",
            "<img class=captcha src='data:image/png;base64,",
        ),
        *("<script src=/recaptcha/enterprise.js>", "grecaptcha.enterprise.execute('k',{", ".createWidget({sitekey:"),
        *("initGeetest({gt:'1", "<fieldset disabled>", "\ud800", "\u202e"),
    ]
)


@settings(deadline=None, max_examples=150)
@given(
    text=st.lists(st.one_of(_PIECES, st.text(max_size=8)), max_size=25).map("".join),
    kind=st.sampled_from([kind for kind, facts in WIDGETS.items() if facts is not None]),
)
def test_any_text_is_read_or_ends_in_an_error_of_ours(text, kind):
    found: object = None
    with suppress(CaptchaQAError):
        found = read_page(text, URL, FormSpec("signup", "/signup", kind, Rule())).form.tag

    assert found in (None, "form")


def test_a_deeply_nested_page_is_read_in_reasonable_time(spec):
    deep = "<div>" * 3000 + "<form>" * 300

    with pytest.raises(PageError):
        read_page(deep, URL, spec(V2))
