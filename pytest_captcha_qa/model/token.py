"""A solved challenge, and the token a test holds of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from pytest_captcha_qa.model.captcha import official_tokens
from pytest_captcha_qa.model.redact import token_prefix

# The name under which single-string types keep their token in `Solution.parts`.
TOKEN = "token"
# Parts that are no secret, as the page shows them or a clock does: masking them would mask other things.
_PUBLIC_PARTS = frozenset({"captcha_id", "gen_time"})
_PUBLIC_TOKENS = official_tokens()


class Source(StrEnum):
    """How this caller came by the token."""

    SOLVED = "solved"
    REUSED = "reused"
    RESUMED = "resumed"
    PREFETCHED = "prefetched"


OWN_SOLVES = frozenset({Source.SOLVED, Source.PREFETCHED})
"""What counts in wait statistics: tokens solved for this caller."""


@dataclass(frozen=True, slots=True, repr=False)
class Solution:
    """What the provider delivered.

    `parts`: the token under `token`, or the named values of a type that has several (GeeTest); `wait`: seconds from
    the provider's acceptance of the task to token in hand, which travels with the token; `user_agent` and `cookies`
    must go with the submit when the solution came with them; `price`: what the solve has cost, in the unit of the
    provider, where it says so.
    """

    parts: Mapping[str, str]
    task_id: str | None = None
    wait: float = 0.0
    user_agent: str | None = None
    cookies: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    price: float | None = None

    @property
    def text(self) -> str:
        """The token, or the first part of a type that has several."""
        return self.parts[TOKEN] if TOKEN in self.parts else next(iter(self.parts.values()), "")

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown of it."""
        parts = ((name, str(value)) for name, value in self.parts.items())
        return tuple(value for name, value in parts if name not in _PUBLIC_PARTS and value not in _PUBLIC_TOKENS)

    @classmethod
    def of_text(cls, text: str) -> Solution:
        """Return what is sent in a token's place to see it refused."""
        return cls({TOKEN: text})

    def timed(self, *, task_id: str, wait: float) -> Solution:
        """Return the same solution with its task id and its wait in seconds."""
        return replace(self, task_id=task_id, wait=wait)

    def __repr__(self) -> str:
        return f"Solution({token_prefix(self.text)}…, parts={sorted(self.parts)})"


class Token:
    """The single-use token a test holds.

    Its text leaves only through `reveal()`, which spends it first; printing it shows a masked prefix. Thread-safe.
    """

    def __init__(
        self,
        solution: Solution,
        *,
        form: str,
        source: Source,
        generation: int,
        age: Callable[[], float],
        spend: Callable[[Token, float | None], Solution],
    ) -> None:
        """Made by the engine, which gives the clock (`age`, seconds) and the way to spend it."""
        self.form = form
        self.source = source
        self.generation = generation
        self._solution = solution
        self._age = age
        self._spend = spend
        self._spent = False
        self._lock = threading.Lock()

    @property
    def age(self) -> float:
        """Seconds since the token was last known not to be ready."""
        return self._age()

    @property
    def wait(self) -> float:
        """Seconds the provider took for it."""
        return self._solution.wait

    @property
    def task_id(self) -> str | None:
        """The provider's id of the task that made it."""
        return self._solution.task_id

    @property
    def spent(self) -> bool:
        """Whether this holder has consumed it."""
        return self._spent

    def take(self, within: float | None = None) -> Solution:
        """Consume the token for the one submit it is good for, and return its solution.

        One that has expired is made anew; `within` bounds the seconds that may take.

        Raises:
            ValueError: it was revealed or taken before, so it was perhaps sent.
            SpentElsewhere: another holder consumed it first.
            DeadlineExceeded: it expired before it was used.
        """
        with self._lock:
            if self._spent:
                raise ValueError("it was submitted or revealed before")
            return self._consume(within)

    def _consume(self, within: float | None = None) -> Solution:
        self._solution = self._spend(self, within)
        self._spent = True
        return self._solution

    def _revealed(self) -> Solution:
        with self._lock:
            return self._solution if self._spent else self._consume()

    def unspend(self) -> None:
        """Count as unspent again: the store has taken it back, for not a byte of it was sent."""
        with self._lock:
            self._spent = False

    def reveal(self) -> str:
        """Spend the token and return its text, as a string whose repr stays masked."""
        return RevealedText(self._revealed().text)

    def reveal_parts(self) -> dict[str, str]:
        """Spend the token and return all its parts by name (GeeTest has three)."""
        return {name: RevealedText(value) for name, value in self._revealed().parts.items()}

    def replayed(self) -> Solution:
        """Return the solution of a token that was spent already, for a refusal test.

        Raises:
            ValueError: it is unspent; sending it would consume it behind the store's back.
        """
        if not self._spent:
            raise ValueError("this token is unspent: submit it with expect='accept' first, then replay it")
        return self._solution

    def secrets(self) -> tuple[str, ...]:
        """Return what a scrubber must learn, without spending the token."""
        return self._solution.secrets

    def renew(self, solution: Solution, *, source: Source, generation: int, age: Callable[[], float]) -> None:
        """Take over a newer solution, when the one held expired before it was used."""
        self._solution, self.source, self.generation, self._age = solution, source, generation, age

    def __repr__(self) -> str:
        state = "spent" if self._spent else "unspent"
        return f"<Token {token_prefix(self._solution.text)}… of {self.form}, {state}, {self.source}>"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a Token stays in the process that obtained it; pass the form's name instead")


class RevealedText(str):
    """A token's text; works as a string everywhere, but its repr is masked."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"'{token_prefix(self)}…'"
