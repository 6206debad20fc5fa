from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_captcha_qa.config.document import KeyPath, key_lines, read
from pytest_captcha_qa.errors import ConfigError

TEXT = '''\
top = 1
[env.staging]
kind = "staging"   # a comment = 3
note = """
kind = "not a key"
[not.a.table]
"""
origins = [
  "https://a.example",
]
[env."odd name".http]
proxy_env = "P"
a.b = 2
[[list]]
x = 1
[[list]]
x = 2
'''


def test_each_key_has_the_line_it_stands_on() -> None:
    assert key_lines(TEXT) == {
        ("top",): 1,
        ("env", "staging"): 2,
        ("env", "staging", "kind"): 3,
        ("env", "staging", "note"): 4,
        ("env", "staging", "origins"): 8,
        ("env", "odd name", "http"): 11,
        ("env", "odd name", "http", "proxy_env"): 12,
        ("env", "odd name", "http", "a", "b"): 13,
        ("list",): 14,
        ("list", "0"): 14,
        ("list", "0", "x"): 15,
        ("list", "1"): 16,
        ("list", "1", "x"): 17,
    }


names = st.from_regex(r"[a-z][a-z0-9_-]{0,5}", fullmatch=True)
scalars = st.one_of(st.integers(), st.booleans(), st.from_regex(r"[a-z =\[\]#]{0,12}", fullmatch=True))


@given(st.dictionaries(names, st.dictionaries(names, scalars, max_size=4), max_size=4))
def test_the_lines_are_those_of_the_keys_that_toml_reads(tables: Mapping[str, Mapping[str, object]]) -> None:
    lines: list[str] = []
    expected: dict[KeyPath, int] = {}
    for table, values in tables.items():
        lines.append(f"[{table}]")
        expected[(table,)] = len(lines)
        for key, value in values.items():
            lines.append(f"{key} = {value!r}".replace("True", "true").replace("False", "false"))
            expected[(table, key)] = len(lines)
    text = "\n".join(lines)
    assert tomllib.loads(text) == tables
    assert key_lines(text) == expected


def test_a_place_falls_back_to_the_nearest_table_with_a_line(tmp_path: Path) -> None:
    path = tmp_path / "captcha-qa.toml"
    path.write_text(TEXT, "utf-8")
    found = read(path, "captcha-qa.toml")
    assert found is not None
    assert found.where(("env", "staging", "kind")) == "captcha-qa.toml:3"
    assert found.where(("env", "staging", "origins", "0")) == "captcha-qa.toml:8"
    assert found.where(("env", "staging", "forms", "x")) == "captcha-qa.toml:2"
    assert found.where(("elsewhere",)) == "captcha-qa.toml"


def test_lines_of_a_table_within_a_shared_file_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text('[project]\nname = "x"\n\n[tool.captcha-qa.env.qa]\nkind = "qa"\n', "utf-8")
    found = read(path, "pyproject.toml", table=("tool", "captcha-qa"))
    assert found is not None
    assert found.where(("env", "qa", "kind")) == "pyproject.toml:5"
    assert read(path, "pyproject.toml", table=("tool", "other")) is None


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"[env.qa]\n[env.qa]\n", "c.toml:2: this key or table stands twice"),
        (b"a = 1\na = 2\n", "c.toml:2: this key or table stands twice"),
        (b"a = {b = 1, b = 2}\n", "c.toml:1: this key or table stands twice"),
        (b"a = 1\nb = c\n", "c.toml:2: this is not valid TOML: invalid value"),
        (b"[env.qa\n", "c.toml:1: this is not valid TOML"),
        (b"\xef\xbb\xbfa = 1\n", "c.toml:1: starts with a byte order mark"),
        ("a = 1\n".encode("utf-16"), "c.toml:1: starts with a byte order mark"),
        (b"a = 1\nb = '\xe4'\n", "c.toml:2: is not UTF-8"),
        (b"a = " + b"[" * 5000, "c.toml: its values are nested too deeply"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_its_line(tmp_path: Path, raw: bytes, sentence: str) -> None:
    path = tmp_path / "c.toml"
    path.write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        read(path, "c.toml")
    assert sentence in caught.value.message


def test_a_folder_and_a_missing_file_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder, not a file"):
        read(tmp_path, "c.toml")
    with pytest.raises(ConfigError, match="does not exist"):
        read(tmp_path / "c.toml", "c.toml")
