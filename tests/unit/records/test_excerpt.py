from __future__ import annotations

import json

import pytest

from pytest_captcha_qa.model.evidence import Exchange
from pytest_captcha_qa.model.redact import Scrubber
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.records.excerpt import EXCERPT_LIMIT, excerpt, visible_text

TOKEN = "kPq7" * 80
PAGE = f"""\
<!doctype html><html><head><title>Sign up</title>
<script>var t = "{TOKEN}"</script><style>p {{ color: red }}</style></head>
<body><!-- {TOKEN} --><h1>Sign up</h1><form><input type="hidden" name="csrf" value="hidden-value">
<textarea>posted words</textarea>
<select><option>Ada</option></select><p class="error">The captcha &amp; more
failed.</p><template><p>later</p></template></form><svg><text>drawn</text></svg>end</body></html>
"""


def answer(text: str, kind: str = "text/html", secrets: tuple[str, ...] = ()) -> Exchange:
    url = Url.parse("https://shop.example/signup")
    return Exchange(
        method="POST",
        url=url,
        headers={},
        answer_headers={"content-type": kind},
        text=text,
        status=200,
        secrets=secrets,
    )


def as_it_is(text: str) -> str:
    return text


def test_of_a_page_what_a_visitor_reads_is_shown() -> None:
    assert excerpt(answer(PAGE), as_it_is) == "Sign up\nSign up\nThe captcha & more\nfailed.\nend"


@pytest.mark.parametrize("broken", ["<p>a<textarea>never closed <p>b", "a<![x", "<p>a</textarea></p>", "a<scr"])
def test_markup_that_is_broken_is_read_as_far_as_it_goes(broken: str) -> None:
    assert visible_text(broken).startswith("a")


def test_what_the_run_knows_as_secret_is_masked() -> None:
    known = Scrubber()
    known.learn([TOKEN])
    assert excerpt(answer(f"<p>refused: {TOKEN[20:60]} bad</p>"), known.clean) == "refused: *** bad"


def test_what_was_sent_with_the_request_is_masked() -> None:
    said = "<p>Thank you Ada Example, ada@example.test: hunter2 was right</p>"
    sent = ("Ada Example", "ada@example.test", "hunter2")
    assert excerpt(answer(said, secrets=sent), as_it_is) == "Thank you ***, *** *** was right"


@pytest.mark.parametrize(
    "opaque", ["9f86d081884c7d659a2feaa0c55ad015", "eyJhbGciOiJIUzI1NiJ9", "2b1c1f6e-7f1b-4b3e-9d7e-2f6f1e3a5b7c"]
)
def test_what_looks_random_is_masked_whoever_made_it(opaque: str) -> None:
    assert excerpt(answer(f"<p>CSRF token {opaque} has expired</p>"), as_it_is) == "CSRF token *** has expired"


@pytest.mark.parametrize(
    "said",
    ["internationalisation", "2026-11-29", "django.core.exceptions", "/usr/lib/python3.11/site-packages", "+" * 20],
)
def test_words_dates_and_paths_are_left(said: str) -> None:
    assert excerpt(answer(f"<p>{said}</p>"), as_it_is) == said


def test_json_keeps_its_shape_without_the_values_of_telling_names() -> None:
    body = {
        "ok": False,
        "error": "captcha",
        "csrfToken": "abc",
        "user": {"email": "a@b.c", "age": 3, "keys": [1, True, None]},
    }
    shown = json.loads(excerpt(answer(json.dumps(body), "application/problem+json"), as_it_is))
    user = {"email": "***", "age": 3, "keys": ["***", True, None]}
    assert shown == {"ok": False, "error": "captcha", "csrfToken": "***", "user": user}


@pytest.mark.parametrize(
    ("text", "kind", "shown"),
    [
        ("a  b\n\n c", "text/plain", "a b\nc"),
        ("{half", "application/json", "(JSON that cannot be read, not shown)"),
        ("", "application/json", ""),
        ("<p>x</p>", "", "x"),
        ("plain", "", "plain"),
        ("%PDF", "application/pdf", "(application/pdf, not shown)"),
        ("", "application/pdf", ""),
    ],
)
def test_other_kinds_are_shown_as_far_as_they_are_text(text: str, kind: str, shown: str) -> None:
    assert excerpt(answer(text, kind), as_it_is) == shown


def test_an_excerpt_is_short() -> None:
    shown = excerpt(answer("<p>" + "word " * 100_000), as_it_is)
    assert len(shown) == EXCERPT_LIMIT
    assert shown.endswith("…")


def test_a_secret_at_the_cut_is_masked_whole() -> None:
    known = Scrubber()
    known.learn([TOKEN])
    shown = excerpt(answer("<p>" + "word " * 395 + TOKEN), known.clean)
    assert TOKEN[:8] not in shown
