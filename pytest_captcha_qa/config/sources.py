"""Where settings come from: defaults < file < ini < variables < command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pytest_captcha_qa.config import document
from pytest_captcha_qa.config.catalog import Catalog, RunTable
from pytest_captcha_qa.config.document import Document
from pytest_captcha_qa.config.options import (
    DEFAULT,
    OPTIONS,
    PREFIX,
    Chosen,
    ExitCodes,
    Outage,
    Value,
    choose,
    option,
)
from pytest_captcha_qa.config.settings import RunSettings, Settings, empty_document
from pytest_captcha_qa.config.variables import Variables, variable_name
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.gate import GateMode
from pytest_captcha_qa.model.probing import Severity
from pytest_captcha_qa.model.url import Origin, UrlRefused

OWN_FILE = "captcha-qa.toml"
SHARED_FILE = "pyproject.toml"
SHARED_TABLE = ("tool", "captcha-qa")
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")


def load(
    start: Path,
    root: Path,
    *,
    options: Mapping[str, object],
    ini: Mapping[str, object],
    environ: Mapping[str, str],
    prefix: str = PREFIX,
) -> Settings:
    """Return the settings of a run started in `start`, whose file is searched upward, no higher than `root`.

    `options` maps each `dest` to what the command line said (None: nothing), `ini` each ini name likewise;
    `environ` are the variables of the process. `prefix` is how the caller's command line writes `--captcha-`.

    Raises:
        ConfigError: the file or a value cannot work; the message has a line for each problem, with its place.
    """

    def pick(dest: str, variables: Mapping[str, str]) -> Chosen | None:
        return choose(option(dest), command_line=options, ini=ini, environ=variables, prefix=prefix)

    found = _document(start, root, pick("captcha_config", environ))
    variables = Variables.beside(found.folder, environ)
    catalog = Catalog.of(found)
    everything = variables.as_mapping()
    said = {row.dest: pick(row.dest, environ if row.early else everything) for row in OPTIONS}
    chosen = {dest: value for dest, value in said.items() if value is not None} | _from_file(catalog, said)
    return Settings(root, _run(chosen, start, root, found.folder), catalog, variables, chosen)


def find(start: Path, root: Path) -> Document | None:
    """Return the nearest configuration from `start` upward, no higher than `root`; None if there is none.

    Where pytest was told of a project elsewhere, the one in its root goes before the one in `start`.

    Raises:
        ConfigError: a file on the way cannot be read, or a folder has two configurations.
    """
    start, root = start.resolve(), root.resolve()
    within = start.is_relative_to(root)
    for folder in (start, *start.parents) if within else (root, start):
        own = _optional(folder / OWN_FILE, root, ())
        shared = _optional(folder / SHARED_FILE, root, SHARED_TABLE)
        if own is not None and shared is not None:
            raise ConfigError(f"{own.label} and [tool.captcha-qa] in {shared.label} both configure; keep one of them")
        if own is not None or shared is not None:
            return own or shared
        if folder == root and within:
            return None
    return None


def project_root(start: Path) -> Path:
    """Return the folder above which nothing is searched if there is no pytest to say it: the repository's."""
    start = start.resolve()
    return next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), start)


def _document(start: Path, root: Path, given: Chosen | None) -> Document:
    if given is None:
        return find(start, root) or empty_document(start)
    base = root if given.source.startswith("ini ") else start
    path = base / str(given.value)
    label = _label(path, root)
    named = f"{given.source} names {label}, which"
    if path.is_dir():
        raise ConfigError(f"{named} is a folder; name a file")
    if not path.exists():
        raise ConfigError(f"{named} does not exist")
    found = document.read(path, label, table=SHARED_TABLE if path.name == SHARED_FILE else ())
    if found is None:
        raise ConfigError(f"{named} has no table [tool.captcha-qa]")
    return found


def _optional(path: Path, root: Path, table: tuple[str, ...]) -> Document | None:
    return document.read(path, _label(path, root), table=table) if path.exists() else None


def _label(path: Path, root: Path) -> str:
    path, root = path.resolve(), root.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _from_file(catalog: Catalog, said: Mapping[str, Chosen | None]) -> dict[str, Chosen]:
    """Return the options that only the file's table [run] sets."""
    found: dict[str, Chosen] = {}
    for key in RunTable.model_fields:
        value, dest = getattr(catalog.run, key), f"captcha_{key}"
        if value is not None and said[dest] is None:
            found[dest] = Chosen(value, catalog.document.where(("run", key)))
    return found


def _run(chosen: Mapping[str, Chosen], start: Path, root: Path, folder: Path) -> RunSettings:
    def value(dest: str) -> Value:
        return chosen[dest].value if dest in chosen else option(dest).default

    def text(dest: str) -> str | None:
        return None if value(dest) is None else str(value(dest))

    budget, hosts, page = value("captcha_budget"), value("captcha_allow_production"), text("captcha_dashboard")
    return RunSettings(
        env=text("captcha_env"),
        required=value("captcha_required") is True,
        records=_base("captcha_records", chosen, start, root, folder) / str(value("captcha_records")),
        release=text("captcha_release"),
        run_id=_checked_run_id(chosen.get("captcha_run_id")),
        budget=budget if isinstance(budget, int) else None,
        account=text("captcha_account"),
        store_env=_checked_variable(chosen.get("captcha_store_env")),
        outage=Outage(str(value("captcha_outage"))),
        allow_production=tuple(map(_checked_host, hosts if isinstance(hosts, tuple) else ())),
        exit_codes=ExitCodes(str(value("captcha_exit_codes"))),
        probe_severity=Severity(str(value("captcha_probe_severity"))),
        metrics=_checked_textfile(chosen.get("captcha_metrics"), _base("captcha_metrics", chosen, start, root, folder)),
        gate=GateMode(str(value("captcha_gate"))) if value("captcha_gate") is not None else None,
        baseline=text("captcha_baseline"),
        dashboard=_base("captcha_dashboard", chosen, start, root, folder) / page if page else None,
    )


def records_without_file(
    start: Path, root: Path, *, options: Mapping[str, object], ini: Mapping[str, object], environ: Mapping[str, str]
) -> Path:
    """Return the folder for the records as far as it is known without a configuration file."""
    row = option("captcha_records")
    found = choose(row, command_line=options, ini=ini, environ=environ)
    chosen = {} if found is None else {row.dest: found}
    return _base(row.dest, chosen, start, root, root) / str(found.value if found else row.default)


def _base(dest: str, chosen: Mapping[str, Chosen], start: Path, root: Path, folder: Path) -> Path:
    """Return where a relative path starts: where it was written, for the command line where one stands."""
    source = chosen[dest].source if dest in chosen else DEFAULT
    if source == DEFAULT or source.startswith("ini "):
        return root
    return start if source.startswith("--") or source == option(dest).variable else folder


def _checked_textfile(given: Chosen | None, base: Path) -> Path | None:
    if given is None:
        return None
    path = base / str(given.value)
    if path.suffix != ".prom":
        raise ConfigError(f"{given.source}: {given.value!r} must end in .prom, or node_exporter does not read it")
    return path


def _checked_run_id(given: Chosen | None) -> str | None:
    if given is None:
        return None
    if not _RUN_ID.match(str(given.value)):
        raise ConfigError(
            f"{given.source}: {str(given.value)[:80]!r} cannot name a run; "
            "use letters, digits, dots, _ and -, at most 128, starting with a letter or digit"
        )
    return str(given.value)


def _checked_variable(given: Chosen | None) -> str | None:
    if given is None:
        return None
    try:
        return variable_name(str(given.value))
    except ValueError as error:
        raise ConfigError(f"{given.source}: {error}") from None


def _checked_host(host: str) -> str:
    flag = option("captcha_allow_production").flag
    try:
        origin = Origin.parse(f"https://{host}")
    except UrlRefused as refused:
        raise ConfigError(f"{flag}: {host[:80]!r} is no host: {refused}") from None
    if origin.host != host:
        raise ConfigError(f"{flag}: write the host only, such as {origin.host}")
    return host
