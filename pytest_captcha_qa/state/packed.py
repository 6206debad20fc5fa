"""Commands of Redis as its protocol has them; the library's own way to that takes as long as the server's answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Packed(NamedTuple):
    """Some words of a command: how many, and all of them encoded."""

    number: int
    words: bytes

    @classmethod
    def of(cls, *words: str | int | float | bytes) -> Packed:
        """Return the words packed."""
        texts = [word if isinstance(word, bytes) else str(word).encode(errors="surrogatepass") for word in words]
        return cls(len(texts), b"".join([b"$%d\r\n%b\r\n" % (len(text), text) for text in texts]))


def command(parts: Sequence[Packed]) -> bytes:
    """Return one command made of all the words."""
    return b"*%d\r\n" % sum([part.number for part in parts]) + b"".join([part.words for part in parts])
