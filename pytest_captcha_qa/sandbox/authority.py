"""The certificate authority of one sandbox: made at its start, its key nowhere but in memory."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme

_LASTS = timedelta(hours=24)
_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Authority:
    """What the https server needs, and the file with the certificate that its clients need."""

    context: ssl.SSLContext
    ca_file: Path


@contextmanager
def authority(*names: str) -> Iterator[Authority]:
    """Make a new authority, and a certificate for loopback and these names that holds for a day.

    The authority's key is gone before anything is served: it signs once. Its file is removed at the end.
    """
    ca = trustme.CA(organization_name="captcha-qa sandbox, trust it on this machine only")
    leaf = ca.issue_cert(*_NAMES, *names, not_after=datetime.now(UTC) + _LASTS)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    chain = b"".join(part.bytes() for part in leaf.cert_chain_pems)
    with ExitStack() as pipes:
        # `ssl` takes paths only; a pipe has one without a byte of the key on a disk.
        chain_path, key_path = (pipes.enter_context(_pipe_with(pem)) for pem in (chain, leaf.private_key_pem.bytes()))
        context.load_cert_chain(chain_path, key_path)
    with tempfile.TemporaryDirectory(prefix="captcha-qa-sandbox-") as folder:
        ca_file = Path(folder, "ca.pem")
        ca.cert_pem.write_to_path(str(ca_file))
        del ca, leaf  # nobody signs with this key again
        yield Authority(context, ca_file)


@contextmanager
def _pipe_with(content: bytes) -> Iterator[str]:
    """Give a path that reads as `content`, which fits into the buffer of a pipe, once."""
    reader, writer = os.pipe()
    try:
        os.write(writer, content)
        os.close(writer)
        yield f"/dev/fd/{reader}"
    finally:
        os.close(reader)
