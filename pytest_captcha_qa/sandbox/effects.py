"""What a fault does to a call: effects on the transport, and answers of one of the servers."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import ClassVar

import anyio
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pytest_captcha_qa.sandbox.bodies import GzipBomb, JsonList, NoStatus, Truncated, Twice
from pytest_captcha_qa.sandbox.described import DescriptionProblem

_HTML = "<!DOCTYPE html>\n<html><head><title>{title}</title></head><body><h1>{title}</h1></body></html>\n"
_LONGEST = 3600.0


@dataclass(frozen=True, slots=True)
class Delay:
    """The answer comes late."""

    seconds: float
    final: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse a wait without end."""
        _check_seconds(self.seconds)

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Wait, then go on."""

        async def delayed(scope: Scope, receive: Receive, send: Send) -> None:
            await anyio.sleep(self.seconds)
            await app(scope, receive, send)

        return delayed


@dataclass(frozen=True, slots=True)
class Drip:
    """The body of the answer arrives byte by byte, `seconds` apart."""

    seconds: float = 0.1
    final: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse a wait without end."""
        _check_seconds(self.seconds)

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Slow down everything the server sends."""

        async def dripping(scope: Scope, receive: Receive, send: Send) -> None:
            async def slowly(message: Message) -> None:
                for part in _bytewise(message):
                    await send(part)
                    await anyio.sleep(self.seconds)

            await app(scope, receive, slowly)

        return dripping


def _check_seconds(seconds: float) -> None:
    if seconds > _LONGEST:
        raise DescriptionProblem(f"'seconds' is at most {_LONGEST:.0f}")


def _bytewise(message: Message) -> Iterator[Message]:
    body = message.get("body", b"")
    if not body:
        yield message
        return
    last = len(body) - 1
    for index in range(len(body)):
        more = index < last or message.get("more_body", False)
        yield {"type": message["type"], "body": body[index : index + 1], "more_body": more}


@dataclass(frozen=True, slots=True)
class Status:
    """An HTML page with any status code, as gateways send it.

    `retry_after`: seconds that a `Retry-After` header asks for, `as_date` as a date.
    """

    status: int
    retry_after: int | None = None
    as_date: bool = False
    final: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse what cannot carry a page."""
        if not 200 <= self.status <= 599 or self.status in (204, 205, 304):
            raise DescriptionProblem(f"status {self.status} cannot carry a page")

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Answer instead of the server."""

        async def page(scope: Scope, receive: Receive, send: Send) -> None:
            response = HTMLResponse(_HTML.format(title=f"Error {self.status}"), self.status, self._headers())
            await response(scope, receive, send)

        return page

    def _headers(self) -> dict[str, str]:
        if self.retry_after is None:
            return {}
        date = format_datetime(datetime.now(UTC) + timedelta(seconds=self.retry_after), usegmt=True)
        return {"Retry-After": date if self.as_date else str(self.retry_after)}


@dataclass(frozen=True, slots=True)
class Html200:
    """An HTML page with status 200 in place of the answer."""

    final: ClassVar[bool] = True

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Answer instead of the server."""
        return HTMLResponse(_HTML.format(title="Please stand by"))


@dataclass(frozen=True, slots=True)
class Empty:
    """Status 200 without a body."""

    final: ClassVar[bool] = True

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Answer instead of the server."""
        return Response()


@dataclass(frozen=True, slots=True)
class Never:
    """The request is taken and never answered."""

    final: ClassVar[bool] = True

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Wait until the caller gives up."""
        return _wait_for_disconnect


@dataclass(frozen=True, slots=True)
class Reset:
    """The connection is reset without an answer; `late`: after the server has done what it was asked."""

    late: bool = False
    final: ClassVar[bool] = True

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Abort the connection, which the server put into the scope."""

        async def reset(scope: Scope, receive: Receive, send: Send) -> None:
            if self.late:
                await app(scope, receive, _into_nothing)
            transport = scope["state"]["transport"]
            sock = transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            transport.abort()
            await _wait_for_disconnect(scope, receive, send)

        return reset


async def _wait_for_disconnect(scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _into_nothing(message: Message) -> None:
    pass


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """The solving service answers with this code instead of doing what it was asked.

    `as_text`: as bare text also where JSON was asked for.
    """

    code: str
    as_text: bool = False


@dataclass(frozen=True, slots=True)
class LostId:
    """A submit is answered with an id that no task has."""


@dataclass(frozen=True, slots=True)
class NotReadyForever:
    """A task submitted while this is on is never solved."""


@dataclass(frozen=True, slots=True)
class Unsolvable:
    """A task submitted while this is on is given up at the end of its solve time."""


@dataclass(frozen=True, slots=True)
class Slow:
    """A task submitted while this is on takes so many times as long to solve."""

    factor: float


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A task submitted while this is on gets the token of the key's last solved task once more."""


@dataclass(frozen=True, slots=True)
class OtherTask:
    """A task submitted while this is on gets a token that was made for somebody else's sitekey and page."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A task submitted while this is on gets a token that ends with this text, such as the letters ERROR."""

    text: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """The form refuses a captcha that it would have accepted."""


@dataclass(frozen=True, slots=True)
class OtherSitekey:
    """The page shows this sitekey instead of its own."""

    sitekey: str


@dataclass(frozen=True, slots=True)
class Score:
    """The vendor gives this score to a token of a type that has one."""

    score: float


ChangedBody = Truncated | Twice | JsonList | NoStatus
TransportEffect = Delay | Drip | Status | Html200 | Empty | Never | Reset | GzipBomb | ChangedBody
Fate = NotReadyForever | Unsolvable | Slow | Duplicate | OtherTask | Ending
ProviderAnswer = ErrorAnswer | LostId | Fate
SiteAnswer = Refuse | OtherSitekey
VendorAnswer = Score
Effect = TransportEffect | ProviderAnswer | SiteAnswer | VendorAnswer

KINDS: Mapping[str, type[Effect]] = {
    "delay": Delay,
    "drip": Drip,
    "status": Status,
    "html200": Html200,
    "empty": Empty,
    "never": Never,
    "reset": Reset,
    "gzip_bomb": GzipBomb,
    "truncated": Truncated,
    "twice": Twice,
    "json_list": JsonList,
    "no_status": NoStatus,
    "error": ErrorAnswer,
    "lost_id": LostId,
    "not_ready_forever": NotReadyForever,
    "unsolvable": Unsolvable,
    "slow": Slow,
    "duplicate": Duplicate,
    "other_task": OtherTask,
    "ending": Ending,
    "refuse": Refuse,
    "sitekey": OtherSitekey,
    "score": Score,
}
