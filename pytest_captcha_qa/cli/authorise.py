"""`captcha-qa authorise`: makes the team's key, where there is none, and the proof an environment serves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pytest_captcha_qa.cli.answers import print_json, refusals_as_json
from pytest_captcha_qa.cli.proof_key import TeamKey, team_key
from pytest_captcha_qa.cli.replacing import changes, moment
from pytest_captcha_qa.cli.settings import settings_here
from pytest_captcha_qa.cli.values import one_of, whole
from pytest_captcha_qa.config.options import option
from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.form import EnvKind
from pytest_captcha_qa.model.url import UrlRefused
from pytest_captcha_qa.ownership import KEY_VARIABLE, ProofTerms, proof_url, render
from pytest_captcha_qa.scope import MAX_VALIDITY, OriginPattern, Probes

_DAY = 86400
_MOST_DAYS = int(MAX_VALIDITY) // _DAY


@dataclass(frozen=True, slots=True)
class _Made:
    """A proof that was written; `changed` is None unless it replaced a file."""

    terms: ProofTerms
    team: TeamKey
    file: Path
    changed: list[str] | None

    @property
    def addresses(self) -> list[str]:
        """Where it must be served, with the `*` of an origin as it stands."""
        key = self.team.key
        return [f"{pattern}{proof_url(pattern.origin, key).path}" for pattern in self.terms.origins]


def authorise(
    env: Annotated[str, typer.Argument(metavar="ENV", hidden=True)],
    origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="one of its origins; repeatable; default: all of them"),
    ] = None,
    probes: Annotated[
        str, typer.Option(metavar="|".join(Probes), help="conformance probes you agree to")
    ] = Probes.NONE.value,
    sitekey: Annotated[
        list[str] | None, typer.Option(metavar="SITEKEY", help="sitekey of your own; repeatable")
    ] = None,
    max_solves_per_hour: Annotated[
        str | None, typer.Option(metavar="N", help="most real solves an hour; default: no limit")
    ] = None,
    days: Annotated[str, typer.Option(metavar="N", help=f"days until it expires, at most {_MOST_DAYS}")] = "90",
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="folder for the file; default: captcha-qa-proof/ENV")
    ] = None,
    config: Annotated[str | None, typer.Option(metavar="PATH", help=option("captcha_config").help)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Make the signed file by which the environment ENV proves that it is yours."""
    with refusals_as_json(as_json):
        settings = settings_here(captcha_config=config)
        environment = settings.environment(env)
        terms = ProofTerms(
            kind=_required_kind(environment),
            origins=_origins(origin, environment),
            expires_at=_expiry(days),
            probes=Probes(one_of("--probes", probes, Probes)),
            sitekeys=frozenset(sitekey or ()),
            max_solves_per_hour=_hourly(max_solves_per_hour),
        )
        made = _make(terms, team_key(settings), output or Path("captcha-qa-proof", env))
    if as_json:
        print_json(_summary(made))
        return
    for line in _report(made):
        typer.echo(line)


def _origins(given: list[str] | None, environment: EnvironmentConfig) -> tuple[OriginPattern, ...]:
    if not given:
        return environment.origins
    try:
        wanted = tuple(dict.fromkeys(map(OriginPattern.parse, given)))
    except UrlRefused as refused:
        raise ConfigError(f"--origin is not usable: {refused}") from None
    known = environment.origins
    for pattern in wanted:
        if pattern not in known and (pattern.wildcard or not any(it.matches(pattern.origin) for it in known)):
            raise ConfigError(
                f"--origin: {pattern} is not among the origins of environment {environment.name!r} "
                f"({', '.join(map(str, known))}), so no run would use the proof; add it there if it is yours"
            )
    return wanted


def _required_kind(environment: EnvironmentConfig) -> EnvKind:
    if environment.kind is EnvKind.DEMO:
        raise ConfigError(
            f"environment {environment.name!r} is a demo and needs no proof; name one of kind qa, staging or production"
        )
    return environment.kind


def _expiry(days: str) -> float:
    why = "; a proof is renewed, not made for ever"
    return float(int(time.time()) + whole("--days", days, least=1, most=_MOST_DAYS, why=why) * _DAY)


def _hourly(given: str | None) -> int | None:
    return None if given is None else whole("--max-solves-per-hour", given, least=1)


def _make(terms: ProofTerms, team: TeamKey, folder: Path) -> _Made:
    """Write the proof and, if it is new, the key; all that can be refused is refused before that."""
    key = team.key
    text = render(terms, key)
    file = folder / f"{key.id}.txt"
    changed = changes(file, terms, key)
    team.store()
    _write(text, file)
    return _Made(terms, team, file, changed)


def _write(text: str, file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        # A web server that runs as somebody else has to read it; it is public.
        file.chmod(0o644)
    except OSError as error:
        raise ConfigError(f"the proof could not be written to {file}: {error.strerror}") from None


def _summary(made: _Made) -> dict[str, object]:
    terms, team = made.terms, made.team
    return {
        "file": str(made.file.resolve()),
        "replaced": made.changed is not None,
        "changes": made.changed or [],
        "kind": terms.kind,
        "origins": list(map(str, terms.origins)),
        "probes": terms.probes,
        "sitekeys": sorted(terms.sitekeys),
        "max_solves_per_hour": terms.max_solves_per_hour,
        "expires_at": int(terms.expires_at),
        "serve_at": made.addresses,
        "key": {
            "id": team.key.id,
            "variable": KEY_VARIABLE,
            "found_in": "environment" if team.dotenv is None else str(team.dotenv),
            "new": team.new,
        },
        "problems": [],
    }


def _report(made: _Made) -> Iterator[str]:
    terms, team = made.terms, made.team
    yield f"Wrote {made.file} (kind {terms.kind}, probes {terms.probes}, until {moment(terms.expires_at)})."
    if made.changed is not None:
        yield f"It replaces an earlier file; {'what changed:' if made.changed else 'nothing changed.'}"
        yield from (f"  {change}" for change in made.changed)
    yield ""
    yield "Serve it as text/plain, without a redirect or a login, at:"
    yield from (f"  {address}" for address in made.addresses)
    if any(pattern.wildcard for pattern in terms.origins):
        yield "where * stands for every host you test."
    yield ""
    yield "Check it with:"
    yield from (f"  curl -sSig '{address.replace('*', 'HOST')}'" for address in made.addresses)
    yield ""
    if team.new:
        yield f"Made a new key and stored it in {team.dotenv}."
        yield f"Set {KEY_VARIABLE} to it wherever else tests run, as a secret; it is not shown here."
    else:
        place = "the environment" if team.dotenv is None else str(team.dotenv)
        yield f"Signed with the key that {KEY_VARIABLE} has in {place}; set the same key wherever tests run."
