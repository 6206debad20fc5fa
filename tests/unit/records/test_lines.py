from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pytest_captcha_qa.errors import RecordError
from pytest_captcha_qa.model.attempt import Expect, Fault, KeyMode, Purpose, Result, VerifyStatus
from pytest_captcha_qa.model.record import AttemptLine, EventLine, Footer, Header, Line, Started
from pytest_captcha_qa.model.token import Source
from pytest_captcha_qa.records.lines import FIELDS, WrongKind, encode, from_json, to_json

SAMPLE = (
    '{"$type":"attempt","ts":"2026-11-29T11:18:03.120Z","id":"a1","slug":"signup","type":"recaptcha_v2",'
    '"task_id":"3397637370","wait":21.4,"verify_status":"pass","env":"staging","release":"1.3.0","run_id":"r1",'
    '"project":"default","account":"main","provider":"captchaai","key_mode":"live","purpose":"check",'
    '"expect":"accept","outcome":"ok","fault":null,"error":null,"source":"solved","generation":1,"submits":1,'
    '"polls":5,"seconds":{"blocked":21.5,"queue":0.1,"solve":20.6,"detect":0.8,"page":0.4,"submit":0.3,'
    '"verify":0.1},"token_prefix":"03AGdB","http_status":303,"variant":null,"attempt":1,"worker":"gw0",'
    '"worker_version":"0.3.0","nodeid":"suites/...","synthetic":true}'
)
TS = "2026-11-29T11:18:03.120Z"
HEADER = Header(ts=TS, tool="pytest-captcha-qa 0.3.0", run_id="r1", env="staging", release=None)
STARTED = Started(ts=TS, id="a1", slug="signup", captcha="turnstile", env="staging", run_id="r1", purpose="check")
EVENT = EventLine(ts=TS, name="store_degraded", run_id="r1", data={"store": "redis", "seconds": 2.5})
FOOTER = Footer(ts=TS, run_id="r1", complete=True, attempts=3)
SCHEMA = json.loads(files("pytest_captcha_qa.records").joinpath("schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)


def sample_attempt() -> AttemptLine:
    line = from_json(json.loads(SAMPLE))
    assert isinstance(line, AttemptLine)
    return line


EXTRA = {"squad": "checkout", "slow": False, "share": 0.5, "note": None, "n" * 40: "x" * 200}
EXTENDED = replace(sample_attempt(), extra=EXTRA)
LINES: list[Line] = [HEADER, replace(HEADER, shard="2"), STARTED, sample_attempt(), EXTENDED, EVENT, FOOTER]


def test_the_sample_of_the_contracts_comes_back_byte_for_byte():
    assert encode(sample_attempt()).decode() == SAMPLE + "\n"


def test_a_price_is_written_only_where_it_is_known():
    priced = json.loads(encode(replace(sample_attempt(), price=0.00085)))
    assert priced == {**json.loads(SAMPLE), "price": 0.00085}
    assert VALIDATOR.is_valid(priced)
    assert from_json(priced).price == 0.00085
    assert not VALIDATOR.is_valid({**priced, "price": "0.00085"})


@pytest.mark.parametrize("cls", FIELDS, ids=lambda cls: cls.type)
def test_every_field_of_a_line_is_listed_and_no_other(cls):
    listed = {"captcha" if key == "type" else key for key in FIELDS[cls]}
    assert listed == {field.name for field in fields(cls)}


def test_every_kind_of_line_has_its_allow_list():
    assert set(FIELDS) == {type(line) for line in LINES}


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.type)
def test_every_line_matches_the_published_schema_and_is_read_back_equal(line):
    packed = json.loads(encode(line))
    VALIDATOR.validate(packed)
    assert from_json(packed) == line


def test_the_schema_itself_is_valid():
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("verify_status", "passed"),
        ("outcome", None),
        ("fault", "nobody"),
        ("token_prefix", "03AGdBq"),
        ("wait", "21.4"),
        ("ts", "yesterday"),
        ("submits", -1),
        ("key_mode", "sandbox"),
        ("seconds", {"solve": "long"}),
        ("$type", "attempts"),
        ("slug", ""),
    ],
)
def test_the_schema_refuses_a_wrong_attempt(field, value):
    assert not VALIDATOR.is_valid({**json.loads(SAMPLE), field: value})


@pytest.mark.parametrize("missing", sorted(json.loads(SAMPLE)))
def test_the_schema_wants_every_field_of_an_attempt(missing):
    line = json.loads(SAMPLE)
    del line[missing]
    assert not VALIDATOR.is_valid(line)


def test_the_schema_lets_newer_fields_pass():
    assert VALIDATOR.is_valid({**json.loads(SAMPLE), "weather": "fine"})


@pytest.mark.parametrize(
    ("field", "enumeration"),
    [
        ("verify_status", VerifyStatus),
        ("outcome", Result),
        ("fault", Fault),
        ("source", Source),
        ("purpose", Purpose),
        ("expect", Expect),
        ("key_mode", KeyMode),
    ],
)
def test_the_words_of_the_schema_are_those_of_the_model(field, enumeration):
    defs = SCHEMA["$defs"]
    rule = defs["attempt"]["properties"][field]
    words = rule.get("enum") or defs[rule["$ref"].rsplit("/", 1)[1]]["enum"]
    assert {word for word in words if word is not None} == {choice.value for choice in enumeration}


def test_long_texts_are_cut_and_say_so():
    shown = to_json(replace(sample_attempt(), variant="x" * 2000, nodeid="n" * 2000))
    assert shown["variant"] == "x" * 499 + "…"
    assert len(shown["nodeid"]) == 1000


def test_no_more_than_six_characters_of_a_token_leave():
    assert to_json(replace(sample_attempt(), token_prefix="03AGdBq24PBCqLmOx"))["token_prefix"] == "03AGdB"


def test_of_the_fields_of_extensions_only_what_fits_leaves_and_is_read():
    given = {"good": 1, "bad name": 2, "listed": [3], "long": "x" * 201, **{f"more_{n}": n for n in range(30)}}
    wanted = {"good": 1, **{f"more_{n}": n for n in range(19)}}
    assert to_json(replace(sample_attempt(), extra=given))["extra"] == wanted
    read = from_json({**json.loads(SAMPLE), "extra": given})
    assert isinstance(read, AttemptLine)
    assert read.extra == wanted


@pytest.mark.parametrize(
    "extra",
    [[], {"a b": 1}, {"x" * 41: 1}, {"a": [1]}, {"a": "x" * 201}, {f"a{n}": n for n in range(21)}],
    ids=["list", "name", "long name", "value", "long value", "too many"],
)
def test_the_schema_refuses_other_fields_of_extensions(extra):
    assert not VALIDATOR.is_valid({**json.loads(SAMPLE), "extra": extra})


def test_what_is_not_on_the_list_stays_inside():
    line = replace(
        sample_attempt(),
        error={"code": "verdict", "message": "refused", "cookie": "sid=1"},
        seconds={"solve": 1.23456, "secret": 4.0},
    )
    shown = to_json(line)
    assert shown["error"] == {"code": "verdict", "message": "refused"}
    assert shown["seconds"] == {"solve": 1.235}


def test_an_event_carries_scalars_only():
    data: Mapping[str, Any] = {
        "n": 1,
        "ok": True,
        "none": None,
        "text": "t" * 600,
        "share": math.inf,
        "huge": 2**80,
        "list": [1],
        "object": {"token": "x"},
        3: "key",
    }
    shown = to_json(replace(EVENT, data=data))["data"]
    assert shown == {"n": 1, "ok": True, "none": None, "text": "t" * 499 + "…", "share": None, "huge": None}


def test_an_event_carries_thirty_values_at_most():
    assert len(to_json(replace(EVENT, data={f"k{n}": n for n in range(100)}))["data"]) == 30


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_wait_that_is_not_finite_is_unknown(value):
    shown = to_json(replace(sample_attempt(), wait=value, seconds={"solve": value}))
    assert shown["wait"] is None
    assert shown["seconds"] == {}


@pytest.mark.parametrize(
    ("field", "value"),
    [("slug", None), ("submits", True), ("verify_status", "passed"), ("wait", "21"), ("seconds", [1])],
)
def test_a_field_of_a_wrong_kind_is_refused_without_telling_its_value(field, value):
    with pytest.raises(RecordError, match=f"'{field}' of its attempt line must be") as caught:
        to_json(replace(sample_attempt(), **{field: value}))
    assert "passed" not in str(caught.value)


@given(st.text(alphabet=st.characters(), max_size=60))
def test_any_text_becomes_one_line_that_every_reader_takes(text):
    packed = encode(replace(sample_attempt(), slug=text, variant=text))
    decoded = packed.decode("utf-8")
    assert len(decoded.splitlines()) == 1
    assert from_json(json.loads(decoded)) is not None


def test_lone_surrogates_and_control_characters_are_escaped():
    packed = encode(replace(EVENT, name="a\ud800b\x9bc\u2028d\ne"))
    assert b"a\\\\ud800b\\u009bc\\u2028d\\ne" in packed


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def told(packed: Mapping[str, Any]) -> str:
    try:
        line = from_json(packed)
    except WrongKind as wrong:
        return str(wrong)
    return "skipped" if line is None else str(asdict(line))


@given(st.sampled_from(LINES), st.data())
def test_whatever_stands_in_a_field_it_is_read_or_called_wrong(line, data):
    packed = to_json(line)
    packed[data.draw(st.sampled_from(sorted(packed)))] = data.draw(JSON)
    assert told(packed)


def test_a_missing_field_that_may_be_empty_is_empty_and_one_that_may_not_is_named():
    line = json.loads(SAMPLE)
    del line["variant"], line["synthetic"]
    assert from_json(line) == sample_attempt()
    del line["slug"]
    with pytest.raises(WrongKind, match="'slug' is missing"):
        from_json(line)


@pytest.mark.parametrize("name", ["weather", None, 5, ["attempt"]])
def test_a_line_of_an_unknown_kind_is_skipped(name):
    assert from_json({"$type": name}) is None
