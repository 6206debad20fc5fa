"""The certificate authority of one sandbox: made at its start, its key nowhere but in memory."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from pytest_captcha_qa.sandbox.outcomes import Certificate

_LASTS = timedelta(hours=24)
_SKEW = timedelta(hours=1)  # clocks of containers differ; a certificate of the future is refused
_NAMES = ("localhost", "127.0.0.1", "::1")
_ELSEWHERE = "elsewhere.example"
_CALLED = "captcha-qa sandbox, trust it on this machine only"


@dataclass(frozen=True, slots=True)
class Authority:
    """What the https server needs, and the file with the certificate that its clients need.

    `bad`: what a server needs whose certificate must be refused.
    """

    context: ssl.SSLContext
    ca_file: Path
    bad: Mapping[Certificate, ssl.SSLContext] = field(default_factory=dict)


@contextmanager
def authority(*names: str) -> Iterator[Authority]:
    """Make a new authority for a day, and certificates for loopback and these names.

    The authority's key is gone before anything is served: it signs now and never again. Its file is removed at the end.
    """
    now = datetime.now(UTC)
    ca, hosts = _new_authority(now), (*_NAMES, *names)
    context = _context(ca.issue_cert(*hosts, not_before=now - _SKEW, not_after=now - _SKEW + _LASTS))
    bad = _bad_contexts(ca, now, hosts)
    with tempfile.TemporaryDirectory(prefix="captcha-qa-sandbox-") as folder:
        ca_file = Path(folder, "ca.pem")
        ca.cert_pem.write_to_path(str(ca_file))
        del ca  # nobody signs with this key again
        yield Authority(context, ca_file, bad)


def bad_contexts() -> Mapping[Certificate, ssl.SSLContext]:
    """Return what servers need whose certificates must be refused, by an authority that nobody trusts."""
    now = datetime.now(UTC)
    return _bad_contexts(_new_authority(now), now, _NAMES)


def _bad_contexts(ca: trustme.CA, now: datetime, hosts: tuple[str, ...]) -> Mapping[Certificate, ssl.SSLContext]:
    past, until = now - 2 * _LASTS, now - _SKEW + _LASTS
    return {
        Certificate.OTHER_HOST: _context(ca.issue_cert(_ELSEWHERE, not_before=now - _SKEW, not_after=until)),
        Certificate.EXPIRED: _context(ca.issue_cert(*hosts, not_before=past, not_after=past + _LASTS)),
        Certificate.UNTRUSTED: _context(
            _new_authority(now).issue_cert(*hosts, not_before=now - _SKEW, not_after=until)
        ),
    }


def _new_authority(now: datetime) -> trustme.CA:
    """Return an authority for a day; trustme's own is valid for a thousand years."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, _CALLED)])
    usage = dict.fromkeys(_USAGES, False) | {"key_cert_sign": True, "digital_signature": True}
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now - _SKEW + _LASTS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return trustme.CA.from_pem(certificate.public_bytes(Encoding.PEM), private)


_USAGES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip


def _context(leaf: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    chain = b"".join(part.bytes() for part in leaf.cert_chain_pems)
    with ExitStack() as pipes:
        # `ssl` takes paths only; a pipe has one without a byte of the key on a disk.
        chain_path, key_path = (pipes.enter_context(_pipe_with(pem)) for pem in (chain, leaf.private_key_pem.bytes()))
        context.load_cert_chain(chain_path, key_path)
    return context


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
