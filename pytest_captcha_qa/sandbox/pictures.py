"""Image captchas: a PNG that shows a text, and names it in a comment that only the sandbox's own solver reads."""

from __future__ import annotations

import secrets
import struct
import zlib
from collections.abc import Iterator

MARK = "QATEST"
"""Every text begins with it, so that no answer can be taken for that of a real captcha."""

_DIGITS = 5
_SCALE = 7
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COMMENT = b"Comment\x00"
_MOST_CHUNKS = 100
_FONT = {
    "A": "010 101 111 101 101",
    "E": "111 100 110 100 111",
    "Q": "111 101 101 111 001",
    "S": "011 100 010 001 110",
    "T": "111 010 010 010 010",
    "0": "111 101 101 101 111",
    "1": "010 110 010 010 111",
    "2": "111 001 111 100 111",
    "3": "111 001 011 001 111",
    "4": "101 101 111 001 001",
    "5": "111 100 111 001 111",
    "6": "111 100 111 101 111",
    "7": "111 001 010 010 010",
    "8": "111 101 111 101 111",
    "9": "111 101 111 001 111",
}


def new_text() -> str:
    """Return a text for a new image."""
    return MARK + "".join(secrets.choice("0123456789") for _ in range(_DIGITS))


def drawn(text: str) -> bytes:
    """Return a PNG that shows the text, dark on light."""
    glyphs = [_FONT[letter].split() for letter in text]
    lines = ["0" * (4 * len(text) + 1), *("0" + "0".join(glyph[row] for glyph in glyphs) + "0" for row in range(5))]
    lines.append(lines[0])
    pixels = b"".join(_row(line) * _SCALE for line in lines)
    width, height = len(lines[0]) * _SCALE, len(lines) * _SCALE
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    # Stored, not packed: some services take no image below a kilobyte.
    chunks = (
        (b"IHDR", header),
        (b"tEXt", _COMMENT + text.encode()),
        (b"IDAT", zlib.compress(pixels, 0)),
        (b"IEND", b""),
    )
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks)


def read(image: bytes) -> str:
    """Return the text of one of the sandbox's images, empty for any other."""
    for kind, data in _chunks(image):
        if kind == b"tEXt" and data.startswith(_COMMENT + MARK.encode()):
            return data.removeprefix(_COMMENT).decode("latin-1")
    return ""


def _row(bits: str) -> bytes:
    return b"\x00" + b"".join((b"\x20" if bit == "1" else b"\xf0") * _SCALE for bit in bits)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _chunks(image: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield kind and data of the chunks of a PNG; nothing if it is none."""
    place = len(_SIGNATURE) if image.startswith(_SIGNATURE) else len(image)
    for _ in range(_MOST_CHUNKS):
        if place + 8 > len(image):
            return
        size, kind = struct.unpack_from(">I4s", image, place)
        yield kind, image[place + 8 : place + 8 + size]
        place += size + 12
