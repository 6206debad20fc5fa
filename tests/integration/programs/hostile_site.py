"""A site, and a solving service, that answer with everything a terminal, a log or a viewer may obey.

`python hostile_site.py` prints its port. Bytes are written by hand: no server library would send them.
"""

from __future__ import annotations

import socketserver
from urllib.parse import quote

EVIL = (
    "\x1b[31mred\x1b]0;title\x07 \x08\x7f\x9b31m <script>alert(1)</script> **bold** [click](//evil.example) "
    "\u2028::error::injected\u2029 \u202egnp.exe\u2069 \ufeff \u0085 ::error::mid\r"
)
HEADER = EVIL.replace("\r", "").encode() + b" \xff\xfe"
LINES = "\n::error::at the start of a line\n\r\n::set-output name=x::y\n<!-- -->"
FIELD = EVIL.replace("\r", "").replace('"', "")
ACTION = "/post/[click](//evil.example)%1b[31m/**x**/::error::/{kind}?next=[click](//evil.example)%1b[31m%e2%80%ae"
WIDGET = '<div class="cf-turnstile" data-sitekey="0x4AAAAAAADnPIDROrmt1Wwj" data-action="login"></div>'


def page(kind: str) -> bytes:
    """Return the page with the form of one kind."""
    fields = (
        f'<input name="{FIELD}" value="x"><input name="email"><input type="hidden" name="{FIELD}2" value="{FIELD}">'
    )
    form = f'<form method="post" action="{ACTION.format(kind=kind)}">{fields}{WIDGET}<button name="{FIELD}">x</button>'
    return f"<!doctype html><title>{EVIL}</title><h1>{EVIL}{LINES}</h1>{form}</form>".encode() + b"\xff\xfe\x00"


def answer(status: bytes, body: bytes, *headers: bytes) -> bytes:
    """Return one whole answer."""
    cookies = b"Set-Cookie: sid" + HEADER + b"=" + HEADER + b"; Path=/"
    lines = [b"HTTP/1.1 " + status + b" " + HEADER, b"X-" + HEADER + b": " + HEADER, cookies, b"Server: " + HEADER]
    head = b"\r\n".join([*lines, *headers, b"Content-Length: %d" % len(body), b"Connection: close"])
    return head + b"\r\n\r\n" + body


HTML = b"Content-Type: text/html; charset=" + HEADER
REFUSED = (EVIL + LINES + "The captcha check failed").encode()
POSTS = {
    "refused": answer(b"422", REFUSED, HTML),
    "neither": answer(b"200", REFUSED, HTML),
    "moved": answer(b"302", REFUSED, b"Location: /x?" + HEADER),
    "away": answer(b"302", REFUSED, b"Location: http://" + quote(EVIL).encode() + b".example/"),
    "broken": answer(b"500", b"Traceback (most recent call last)\n" + REFUSED, HTML),
    "large": answer(b"422", REFUSED * 600, HTML),  # some 100 kB
    "json": answer(b"400", b'{"error-codes": ["' + REFUSED + b'"]}', b"Content-Type: application/json"),
    "status": b"HTTP/1.1 " + HEADER + b"\r\n\r\n" + REFUSED,
    "nothing": b"",
}
PROVIDER = answer(b"200", b"ERROR_" + EVIL.encode() + LINES.encode() + b"\xff", b"Content-Type: text/plain")


class Site(socketserver.StreamRequestHandler):
    """Answers one request."""

    timeout = 10

    def handle(self) -> None:
        """Read it as far as its length says, and answer by its path."""
        path = self.rfile.readline(70_000).split(b" ")[1:2] or [b""]
        length = 0
        while (line := self.rfile.readline(70_000)) not in (b"\r\n", b"\n", b""):
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        self.rfile.read(length)
        self.wfile.write(self.told(path[0].decode("latin-1").partition("?")[0].strip("/").split("/")))

    def told(self, parts: list[str]) -> bytes:
        """Return the answer to a path."""
        if parts[0] == "page":
            return answer(b"200", page(parts[-1]), b"Content-Type: text/html")
        return POSTS.get(parts[-1], PROVIDER) if parts[0] == "post" else PROVIDER


class Server(socketserver.ThreadingTCPServer):
    """Serves until it is killed."""

    daemon_threads = True


if __name__ == "__main__":
    with Server(("127.0.0.1", 0), Site) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
