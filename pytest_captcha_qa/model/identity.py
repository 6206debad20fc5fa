"""The synthetic person of one attempt, and the fixed names a configuration may refer to."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

# RFC 2606 reserves example.com: nothing sent there reaches anybody.
RESERVED_DOMAIN = "example.com"
# The same RFC, and RFC 6761.
_RESERVED = re.compile(r"(?:.+\.)?(?:example\.(?:com|net|org)|test|example|invalid|localhost)\Z", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\{([a-z_.]+)\}")


@dataclass(frozen=True, slots=True)
class Identity:
    """Made-up personal data on a reserved or sink domain; the password lives in memory only."""

    id: str
    email: str
    username: str
    first_name: str
    last_name: str
    phone: str
    password: str = field(repr=False)

    @property
    def name(self) -> str:
        """First and last name."""
        return f"{self.first_name} {self.last_name}"

    def belongs_to(self, sink: str | None) -> bool:
        """Return whether its address is on a reserved domain or on the team's own sink domain (R0.9)."""
        domain = self.email.rpartition("@")[2].lower()
        own = sink is not None and (domain == sink.lower() or domain.endswith(f".{sink.lower()}"))
        return own or bool(_RESERVED.match(domain))

    def numbered(self, number: int) -> Identity:
        """Return the same person for the test's `number`-th attempt: from the second on with an address of its own."""
        if number < 2:
            return self
        local, _, domain = self.email.partition("@")
        return replace(self, email=f"{local}.{number}@{domain}", username=f"{self.username}{number}")

    @classmethod
    def make(cls, run_id: str, *, domain: str = RESERVED_DOMAIN) -> Identity:
        """Return a new identity whose e-mail address tells the run that made it."""
        number = secrets.token_hex(5)
        run = re.sub(r"[^a-z0-9]+", "-", run_id.lower()).strip("-")[-24:] or "run"
        return cls(
            id=f"{run}.{number}",
            email=f"captcha-qa.{run}.{number}@{domain}",
            username=f"captchaqa{number}",
            first_name="Quality",
            last_name=f"Check {number[:4].translate(str.maketrans('0123456789', 'ghijklmnop')).title()}",
            phone="+12025550123",  # 555-0100 to 555-0199 are reserved for fiction
            password=f"Qa1!{secrets.token_urlsafe(18)}",
        )


PLACEHOLDERS = (
    "identity.email",
    "identity.name",
    "identity.first_name",
    "identity.last_name",
    "identity.username",
    "identity.phone",
    "identity.password",
    "run_id",
    "env",
)


def placeholder_values(identity: Identity, *, run_id: str, env: str) -> dict[str, str]:
    """Return the value of each name of `PLACEHOLDERS`."""
    values = {name: str(getattr(identity, name.partition(".")[2])) for name in PLACEHOLDERS if "." in name}
    return values | {"run_id": run_id, "env": env}


def placeholders_in(template: str) -> list[str]:
    """Return the names a template refers to, known or not."""
    return _PLACEHOLDER.findall(template)


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return the template with its names replaced; there are no expressions, and unknown names stay as they are."""
    return _PLACEHOLDER.sub(lambda match: values.get(match.group(1), match.group()), template)
