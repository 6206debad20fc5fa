"""The measured table (reference/verification.md 4.1b) as data: what each library does, and which probe sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

VERSIONS = {
    "django-recaptcha": "4.1.0",
    "drf-recaptcha": "4.0.3",
    "django-hCaptcha": "0.2.0",
    "friendly-captcha-client": "0.3.0",
}
FORMS = ("recaptcha-v2", "recaptcha-v3", "drf", "hcaptcha", "friendly", "friendly-strict")
FRIENDLY = FORMS[4:]
VERDICTS = {"A": "unsafe", "X": "crash"}


@dataclass(frozen=True)
class Row:
    """A row of the table: what the vendor answers (docs/sandbox.md) and a letter for each of FORMS.

    A: accepted, R: refused, X: an exception, which is a 500; -: not in the table. `told`: how a finding names it.
    """

    name: str
    letters: str
    outcome: Mapping[str, Any] = field(default_factory=dict)
    told: str = ""

    @property
    def cells(self) -> dict[str, str]:
        return dict(zip(FORMS, self.letters.split(), strict=True))


PAGE, BAD, AUTH = {"body": "html"}, {"status": 400}, {"status": 401}
ANSWERS = (
    #    the vendor's answer                   v2 v3 drf hC fr strict
    Row("success, all fields right",           "A A A A A A", {}),
    Row("v2-style: no score, no action",       "A R R A - -", {"without": ["score", "action"]}, "without a score"),
    Row("success: false, with a code",         "R R R R - -", {"code": "timeout-or-duplicate"}),
    Row("success: false, without a code",      "R R R R A A", {"code": ""}, "refuses without a code"),
    Row('success: "false", a text',            "A A A A - -", {"values": {"success": "false"}}),
    Row("success missing",                     "X X X R - -", {"without": ["success"]}, "without `success`"),
    Row("score 0.0",                           "A R R A - -", {"score": 0.0}, "the score 0.0"),
    Row("score 0.5, the threshold",            "A A A A - -", {"score": 0.5}),
    Row("another action",                      "A R R A - -", {"action": "another"}, "another action"),
    Row("a foreign hostname",                  "A A A A - -", {"hostname": "elsewhere.example"}, "another hostname"),
    Row("400",                                 "R R R R - -", {"status": 400, **PAGE}, "answers with 400"),
    Row("429",                                 "R R R R R R", {"status": 429, **PAGE}, "answers with 429"),
    Row("500",                                 "R R R R A R", {"status": 500, **PAGE}, "answers with 500"),
    Row("503",                                 "R R R R A R", {"status": 503, **PAGE}, "answers with 503"),
    Row("500 with a success in it",            "R R R R A A", {"status": 500}),
    Row("200 with HTML",                       "X X X X A R", {"body": "html"}, "answers with HTML"),
    Row("200 with nothing",                    "X X X X A R", {"body": "empty"}, "answers with nothing"),
    Row("302 to HTML",                         "X X X X A R", {"body": "redirect_html"}, "a redirect to HTML"),
    Row("200 with []",                         "X X X X A R", {"body": "list"}, "answers with a list"),
    Row("200 with null",                       "X X X X A R", {"body": "null"}, "answers with null"),
    Row("time-out",                            "X X X X A R", {"delay": 3}, "a slow answer"),
    Row("connection reset",                    "X X X X A R", {"body": "reset"}, "ends the connection"),
    Row("connection refused",                  "X X X X A R"),
    Row("Friendly's response_missing",         "- - - - A R", {"code": "response_missing", **BAD}, "an empty token"),
    Row("Friendly's auth_invalid",             "- - - - A R", {"code": "auth_invalid", **AUTH}, "the secret is wrong"),
    Row("Friendly's sitekey_invalid",          "- - - - A R", {"code": "sitekey_invalid", **BAD}),
    Row("Friendly, a code nobody knows",       "- - - - A R", {"code": "no-such-code"}, "an unknown code"),
    Row("Friendly's response_invalid",         "- - - - R R", {"code": "response_invalid"}),
    Row("Friendly's response_timeout",         "- - - - R R", {"code": "response_timeout"}),
    Row("Friendly's response_duplicate",       "- - - - R R", {"code": "response_duplicate"}),
)  # fmt: skip
BY_NAME = {row.name: row for row in ANSWERS}
REFUSED = "connection refused"  # no outcome of a token: there is no stand-in at all

MISSING = object()
LONG = "x" * 100_000
TOKENS: tuple[tuple[str, Any, str], ...] = (
    # the value of the field        sent to the vendor, or not, in the order of FORMS
    ("token: missing",   MISSING,        "no no no no - -"),
    ('token: ""',        "",             "no no no no - -"),
    ("token: one space", " ",            "no no no sent - -"),
    ("token: a list",    ["x"],          "sent sent no sent - -"),
    ("token: an object", {"x": "y"},     "sent sent no sent - -"),
    ("token: x&canary=1", "x&canary=1",  "sent sent sent sent - -"),
    ("token: 100 000 characters", LONG,  "sent sent sent sent - -"),
)  # fmt: skip

PROBES: Mapping[str, tuple[str, ...]] = {
    # the rows whose answers a probe provokes, in its order: the first that is no R is its finding
    "M01": ("token: missing",),
    "M02": ("token: missing",),
    "M03": ('token: ""', "token: one space", "Friendly's response_missing"),
    "M04": ("success: false, with a code", "Friendly's response_invalid"),
    "M05": ("success: false, with a code", "Friendly's response_duplicate"),
    "M06": ("success: false, with a code", "Friendly's response_duplicate"),
    "M07": ("success: false, with a code", "Friendly's response_timeout"),
    "M08": ("another action",),
    "M09": ("score 0.0", "v2-style: no score, no action"),
    "M11": ("a foreign hostname",),
    "M12": ("success: false, with a code", "Friendly's response_invalid"),
    "M13": ("time-out",),
    "M14": ("400", "429", "500", "503", "connection reset", "Friendly's auth_invalid"),
    "M15": ("200 with HTML", "200 with nothing", "200 with []", "200 with null", "302 to HTML"),
    "M16": ("success: false, without a code", "success missing"),
    "M17": ("success: false, with a code", "Friendly, a code nobody knows"),
    "M18": ("token: a list", "token: an object"),
    "M20": ("token: x&canary=1",),
    "M37": ("token: 100 000 characters",),
}
NO_PROBE = {
    "success, all fields right": "it is the positive control",
    'success: "false", a text': "no vendor sends it, and libraries in wide use take it for true (docs/conformance.md)",
    "score 0.5, the threshold": "whether the threshold itself passes is the team's choice; it is no refusal",
    "500 with a success in it": "no vendor sends it, and who reads `success` and no status is sound",
    REFUSED: "a probe cannot take the vendor away; it is alike to a connection that is reset, which M14 has",
    "Friendly's sitekey_invalid": "it is alike to auth_invalid, which M14 has",
}
ALIKE = {REFUSED: "connection reset", "Friendly's sitekey_invalid": "Friendly's auth_invalid"}
NOT_ASKED = {
    "M08": dict.fromkeys(("recaptcha-v2", "hcaptcha", *FRIENDLY), "names no action"),
    "M09": dict.fromkeys(("recaptcha-v2", "hcaptcha", *FRIENDLY), "has no score"),
    "M11": dict.fromkeys(FRIENDLY, "names no hostname"),
    "M12": dict.fromkeys(("recaptcha-v2", "hcaptcha"), "no other form of its type"),
}


def expected(id: str, slug: str) -> tuple[str, str]:
    """Return what the cells say of a probe, and a word of the reason."""
    if slug in NOT_ASKED.get(id, {}):
        return "not applicable", NOT_ASKED[id][slug]
    for name in PROBES[id]:
        # What arrives of the tokens is none that the vendor has made: it is refused.
        letter = BY_NAME[name].cells[slug] if name in BY_NAME else "R"
        if letter in VERDICTS:
            return VERDICTS[letter], BY_NAME[name].told
    return "safe", ""
