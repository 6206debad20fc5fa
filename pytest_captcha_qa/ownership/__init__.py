"""The proof that an origin belongs to the team: made, signed and read by `proof`, got by `fetch` (R0.2)."""

from pytest_captcha_qa.ownership.fetch import ProofFetcher
from pytest_captcha_qa.ownership.proof import (
    KEY_VARIABLE,
    SIZE_LIMIT,
    ProofKey,
    ProofTerms,
    authenticate,
    key_id,
    make_key,
    proof_url,
    render,
)

__all__ = [
    "KEY_VARIABLE",
    "SIZE_LIMIT",
    "ProofFetcher",
    "ProofKey",
    "ProofTerms",
    "authenticate",
    "key_id",
    "make_key",
    "proof_url",
    "render",
]
