"""A form's page as it is read, whether or not anything on it works."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pytest_captcha_qa.model.url import Url


@dataclass(frozen=True, slots=True)
class SeenPage:
    """What one page shows; nothing was sent but GET requests.

    `policies`: its content security policies, of headers and elements; `sitekeys`: those of the widgets of the form's
    type, None where such a widget has none; `scripts`: the addresses of its scripts as they are written; `bundles`:
    address and text of those that lie on the page's own origin.
    """

    url: Url
    status: int
    text: str = field(repr=False)
    policies: tuple[str, ...] = ()
    sitekeys: tuple[str | None, ...] = ()
    scripts: tuple[str, ...] = ()
    bundles: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def named_keys(self) -> list[str]:
        """The sitekeys that stand in the page as they are."""
        return [key for key in self.sitekeys if key and " " not in key]

    def shown_in(self, text: str, fields: Iterable[str]) -> bool:
        """Return whether a text shows the form of this page: a sitekey of it, or all of these fields."""
        names = [f'name="{name}"' in text or f"name={name}" in text for name in fields]
        return any(key in text for key in self.named_keys) or (bool(names) and all(names))
