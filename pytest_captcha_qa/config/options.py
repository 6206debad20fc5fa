"""Every option of plugin and CLI, declared once; imports nothing but the standard library.

Every pytest run of everybody who has the plugin installed imports this: named tuples are made in a fifth of the time
of frozen dataclasses.

The plugin mounts a row as `--captcha-*` and `captcha_*`, the CLI without the prefix, `sources` reads its ini
entry and its variable, and the README shows `markdown_table()`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import NamedTuple

from pytest_captcha_qa.errors import ConfigError

DEFAULT = "default"
PREFIX = "--captcha-"
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})

Value = str | int | bool | tuple[str, ...] | None


class Kind(StrEnum):
    """How an option is written."""

    TEXT = "str"
    NUMBER = "int"  # a whole number from 1
    FLAG = "flag"
    CHOICE = "choice"
    APPEND = "append"  # may be given several times


class Outage(StrEnum):
    """What a test shows when provider or network are down."""

    SKIP = "skip"
    ERROR = "error"


class ExitCodes(StrEnum):
    """Whether the exit code tells 10 to 16 apart, or says 1 for all of them."""

    EXTENDED = "extended"
    PYTEST = "pytest"


class Option(NamedTuple):
    """One option. `ini` and `variable` are None where it cannot be set there.

    `path`: the key of the file it overrides (`*` stands for the chosen environment), None if there is none.
    `early`: it decides whether and which file is read, so `.env` beside that file cannot set it.
    """

    flag: str
    dest: str
    help: str
    kind: Kind = Kind.TEXT
    metavar: str = ""
    choices: tuple[str, ...] = ()
    default: Value = None
    shown_default: str = ""
    ini: str | None = None
    variable: str | None = None
    path: str | None = None
    early: bool = False


class Chosen(NamedTuple):
    """The value of an option and the source that gave it, in words."""

    value: Value
    source: str


_OUTAGES = tuple(outage.value for outage in Outage)
_SEVERITIES = ("critical", "high", "medium", "low")
_GATE_MODES = ("off", "report", "enforce")
_EXIT_CODES = tuple(codes.value for codes in ExitCodes)

OPTIONS: tuple[Option, ...] = (
    Option(
        "--captcha-env", "captcha_env", metavar="NAME", early=True,
        help="environment to test; `demo` is built in. Without it captcha tests are skipped",
        ini="captcha_env", variable="CAPTCHA_QA_ENV", shown_default="none",
    ),
    Option(
        "--captcha-required", "captcha_required", kind=Kind.FLAG, default=False, shown_default="off",
        early=True, help="without an environment a captcha test is a usage error (for CI)",
        ini="captcha_required", variable="CAPTCHA_QA_REQUIRED",
    ),
    Option(
        "--captcha-suite", "captcha_suite", kind=Kind.FLAG, default=False, shown_default="off",
        early=True, help="also collect the built-in suite, for every configured form of the types it knows",
        ini="captcha_suite", variable="CAPTCHA_QA_SUITE",
    ),
    Option(
        "--captcha-probes", "captcha_probes", metavar="safe|all|ID,...", early=True, shown_default="none",
        help="conformance: also collect the probes of what a backend must refuse; ids, families and a least severity "
        "may be listed",
        variable="CAPTCHA_QA_PROBES",
    ),
    Option(
        "--captcha-probe-severity", "captcha_probe_severity", kind=Kind.CHOICE, choices=_SEVERITIES, default="medium",
        shown_default="medium", path="run.probe_severity",
        help="from which severity an unsafe probe fails its test and the run (exit 14)",
        variable="CAPTCHA_QA_PROBE_SEVERITY",
    ),
    Option(
        "--captcha-config", "captcha_config", metavar="PATH", early=True, shown_default="found upwards",
        help="configuration file, instead of captcha-qa.toml or [tool.captcha-qa] in pyproject.toml",
        ini="captcha_config", variable="CAPTCHA_QA_CONFIG",
    ),
    Option(
        "--captcha-records", "captcha_records", metavar="DIR", default="reports/records",
        shown_default="reports/records", path="run.records",
        help="folder for the records of the run",
        ini="captcha_records", variable="CAPTCHA_QA_RECORDS",
    ),
    Option(
        "--captcha-metrics", "captcha_metrics", metavar="PATH", shown_default="none", path="run.metrics",
        help="Prometheus textfile (.prom) to which the figures of the run are added",
        ini="captcha_metrics", variable="CAPTCHA_QA_METRICS",
    ),
    Option(
        "--captcha-release", "captcha_release", metavar="TEXT", shown_default="what the environment says",
        help="version of the site under test",
        variable="CAPTCHA_QA_RELEASE", path="env.*.release_env",
    ),
    Option(
        "--captcha-run-id", "captcha_run_id", metavar="TEXT", shown_default="CI run and job, else random",
        help="name of this run; names its records",
        variable="CAPTCHA_QA_RUN_ID",
    ),
    Option(
        "--captcha-gate", "captcha_gate", kind=Kind.CHOICE, choices=_GATE_MODES, path="run.gate",
        shown_default="report where [gate] exists",
        help="judge the run by the rules of [gate]: only tell, or also answer 10, 11 or 16; after -k, --lf, other "
        "deselection or in a shard at most report",
        variable="CAPTCHA_QA_GATE",
    ),
    Option(
        "--captcha-baseline", "captcha_baseline", metavar="REF", shown_default="none", path="run.baseline",
        help="what gate and dashboard compare with: `previous` (the last complete run of another release), a release, "
        "or record files; a release goes before files of its name",
        variable="CAPTCHA_QA_BASELINE",
    ),
    Option(
        "--captcha-dashboard", "captcha_dashboard", metavar="PATH", shown_default="none", path="run.dashboard",
        help="write the dashboard there at the end: one HTML file about this run and the history in its records",
        variable="CAPTCHA_QA_DASHBOARD",
    ),
    Option(
        "--captcha-budget", "captcha_budget", kind=Kind.NUMBER, metavar="N", path="run.budget",
        shown_default="twice the selected captcha tests",
        help="most captchas this run may submit to the provider",
        variable="CAPTCHA_QA_BUDGET",
    ),
    Option(
        "--captcha-account", "captcha_account", metavar="NAME", shown_default="the environment's",
        help="provider account of this run",
        variable="CAPTCHA_QA_ACCOUNT", path="env.*.account",
    ),
    Option(
        "--captcha-store-env", "captcha_store_env", metavar="VARIABLE", shown_default="the environment's",
        help="variable that holds the address of the shared store",
        variable="CAPTCHA_QA_STORE_ENV", path="env.*.store_env",
    ),
    Option(
        "--captcha-outage", "captcha_outage", kind=Kind.CHOICE, choices=_OUTAGES, default=Outage.ERROR.value,
        shown_default="error", path="run.outage",
        help="what a test shows when provider or network are down; the exit code is 12 either way",
        ini="captcha_outage", variable="CAPTCHA_QA_OUTAGE",
    ),
    Option(
        "--captcha-allow-production", "captcha_allow_production", kind=Kind.APPEND, metavar="HOST",
        default=(), shown_default="none",
        help="production host this run may test; may be repeated, on the command line only",
    ),
    Option(
        "--captcha-exit-codes", "captcha_exit_codes", kind=Kind.CHOICE, choices=_EXIT_CODES,
        default=ExitCodes.EXTENDED.value, shown_default="extended", path="run.exit_codes",
        help="`pytest` answers 1 in place of 10 to 16",
        ini="captcha_exit_codes", variable="CAPTCHA_QA_EXIT_CODES",
    ),
)  # fmt: skip

_BY_DEST = {option.dest: option for option in OPTIONS}


def option(dest: str) -> Option:
    """Return the row of the table with this `dest`."""
    return _BY_DEST[dest]


def choose(
    row: Option,
    *,
    command_line: Mapping[str, object],
    ini: Mapping[str, object],
    environ: Mapping[str, str],
    prefix: str = PREFIX,
) -> Chosen | None:
    """Return the value from the strongest source that has one: command line, variable, ini; None if none has.

    `command_line` maps dests, `ini` ini names, `environ` variables to what stands there; None and what is
    empty count as not given. `prefix` is how the caller's command line writes `--captcha-`.

    Raises:
        ConfigError: the value does not fit the option; the message names its source.
    """
    flag = row.flag.replace(PREFIX, prefix, 1)
    places = (
        (flag, command_line.get(row.dest)),
        (row.variable or "", environ.get(row.variable) if row.variable else None),
        (f"ini {row.ini}", ini.get(row.ini) if row.ini else None),
    )
    for source, raw in places:
        if raw is not None and raw not in ("", [], ()):
            return Chosen(_READERS[row.kind](row, raw, source), source)
    return None


def _text(row: Option, raw: object, source: str) -> str:
    return str(raw)


def _number(row: Option, raw: object, source: str) -> int:
    text = str(raw).strip()
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        raise ConfigError(f"{source}: {text!r} is not a whole number from 1")
    return int(text)


def _flag(row: Option, raw: object, source: str) -> bool:
    text = str(raw).strip().lower()
    if text in _TRUE | _FALSE:
        return text in _TRUE
    raise ConfigError(f"{source}: {text!r} is neither yes nor no; write true or false")


def _choice(row: Option, raw: object, source: str) -> str:
    text = str(raw)
    if text in row.choices:
        return text
    near = get_close_matches(text.lower(), row.choices, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ConfigError(f"{source}: {text!r} is not one of {', '.join(row.choices)}{hint}")


def _several(row: Option, raw: object, source: str) -> tuple[str, ...]:
    return tuple(map(str, raw)) if isinstance(raw, list | tuple) else (str(raw),)


_READERS: dict[Kind, Callable[[Option, object, str], Value]] = {
    Kind.TEXT: _text,
    Kind.NUMBER: _number,
    Kind.FLAG: _flag,
    Kind.CHOICE: _choice,
    Kind.APPEND: _several,
}


def markdown_table() -> str:
    """Return the table of options as the README shows it between its markers."""
    lines = ["| option | default | ini, variable | meaning |", "| --- | --- | --- | --- |"]
    lines += [f"| {' | '.join(_cells(row))} |" for row in OPTIONS]
    return "\n".join(lines) + "\n"


def _cells(row: Option) -> tuple[str, str, str, str]:
    value = "\\|".join(row.choices) or row.metavar
    elsewhere = ", ".join(f"`{name}`" for name in (row.ini, row.variable) if name) or "-"
    return f"`{row.flag}{' ' + value if value else ''}`", row.shown_default, elsewhere, row.help
