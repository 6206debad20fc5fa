"""How one key of the solving service is spoken to: every point in which real services disagree, as a switch.

The disagreements are those of `provider-protocol.md`; a dialect says what is usual, a key may say otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Ids(StrEnum):
    """What a task id is in JSON: CaptchaAI's service has sent both."""

    STRING = "string"
    INTEGER = "integer"


class Grammar(StrEnum):
    """Which of the two grammars an answer uses: the one asked for, or always the same."""

    ASKED = "asked"
    JSON = "json"
    TEXT = "text"


class Where(StrEnum):
    """The member of a JSON answer that holds the solution."""

    REQUEST = "request"
    RESULT = "result"
    SOLUTION = "solution"


class Parts(StrEnum):
    """How a solution of several parts is written: in JSON an object, JSON text or `name:value` pairs.

    As plain text there is no object: `object` gives JSON text there, `mixed` gives pairs.
    """

    OBJECT = "object"
    JSON = "json"
    PAIRS = "pairs"
    MIXED = "mixed"


class Waiting(StrEnum):
    """What a poll gets while the task is being solved: the code, or an empty body always or at first."""

    CODE = "code"
    EMPTY = "empty"
    EMPTY_FIRST = "empty_first"


class Unknown(StrEnum):
    """What a poll gets for a task that is not there."""

    CODE = "code"
    EMPTY = "empty"


class Busy(StrEnum):
    """What a submit gets while all threads are in use: CaptchaAI's own sources tell three stories."""

    ZERO_BALANCE = "zero_balance"
    NO_SLOT = "no_slot"
    QUEUE = "queue"


class UserAgent(StrEnum):
    """Under which name the solver's user agent comes with a solution."""

    NONE = "none"
    LOWER = "useragent"
    CAMEL = "userAgent"
    SNAKE = "user_agent"


class Cookies(StrEnum):
    """In which shape the solver's cookies come with a solution."""

    NONE = "none"
    OBJECT = "object"
    TEXT = "text"
    LIST = "list"


class Number(StrEnum):
    """Whether a number in JSON is a number or a text."""

    STRING = "string"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Switches:
    """All switches of one key; the defaults are the sandbox's own dialect."""

    ids: Ids = Ids.STRING
    grammar: Grammar = Grammar.ASKED
    answer_in: Where = Where.REQUEST
    with_solution: bool = False
    """Whether the solution is repeated in a `solution` object, as CapSkip does for some types."""
    parts: Parts = Parts.MIXED
    prefixed: bool = False
    """Whether the parts of a GeeTest v3 solution are called `geetest_challenge` and so on."""
    user_agent: UserAgent = UserAgent.NONE
    cookies: Cookies = Cookies.NONE
    waiting: Waiting = Waiting.CODE
    unknown_id: Unknown = Unknown.CODE
    read_once: bool = False
    """Whether a token is handed out once, and an empty body afterwards."""
    when_busy: Busy = Busy.ZERO_BALANCE
    error_text: bool = False
    """Whether JSON errors carry an `error_text` beside the code."""
    older_codes: bool = False
    """Whether the codes that have two spellings are sent in the other one."""
    balance_as: Number = Number.STRING
    threads_as: Number = Number.STRING
    threads_status: bool = True
    """Whether the threads come with a `status`."""
    free_threads: bool = False
    image_least: int = 1024
    """Fewest bytes of an image."""
    image_most: int = 600_000
    """Most bytes of an image."""
