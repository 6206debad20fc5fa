"""An extension that gives away every secret it can reach, in every place where something of it goes."""

from __future__ import annotations

import gc
import itertools
import logging
import os

from conftest import secrets_of

NAMES = "SHOP_KEY", "SITE_LOGIN", "SITE_HEADERS", "SITE_COOKIE", "CAPTCHA_QA_PROOF_KEY"
_turns = itertools.count()


def reachable() -> list[str]:
    known = {value for thing in gc.get_objects() for value in secrets_of(thing)}
    return sorted(known | {os.environ[name] for name in NAMES})


def record_fields(line):
    found = reachable()
    given = {}
    for number in range(4):
        secret = found[(next(_turns)) % len(found)]
        given |= {f"whole_{number}": secret[:200], f"within_{number}": f"it is {secret[:150]}, and so on"}
        given |= {f"part_{number}": secret[5:28], secret[:40]: number}
    return given


def form_opened(form, page):
    found = reachable()
    print(found[::2])
    logging.getLogger("team").error("all of %s", found[1::2])
    raise type(found[next(_turns) % len(found)], (Exception,), {})(found)
