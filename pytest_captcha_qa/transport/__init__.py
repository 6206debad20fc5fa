"""The one HTTP client of the package; nothing else imports `requests`.

    client = HttpClient(HttpAccess(basic_auth=("qa", "...")), marks={"X-Captcha-QA-Run": run_id})
    session = client.new_session()                      # own cookies, same connections; one an attempt
    reply = session.request("GET", url, deadline=deadline, grant=grant)
    reply = session.request("POST", url, deadline=deadline, grant=grant, payload=urlencoded([("a", "b")]))

A call sends exactly one request and never follows a redirect. It is over by its deadline, whatever the other
side does, and the decoded body has at most `limit` bytes. With a grant the URL is compared with it again, and
marks, the environment's credentials and the session's cookies go along; without one (provider, vendor) none
does. Whatever fails is a TransportError whose `kind` is a key of KINDS, or a ScopeDenied; neither has a
cause, a context or a traceback that could show a key or a body.
"""

from pytest_captcha_qa.transport.access import HttpAccess
from pytest_captcha_qa.transport.client import (
    ANSWER_LIMIT,
    PAGE_LIMIT,
    HttpClient,
    Permission,
    ProofFetch,
)
from pytest_captcha_qa.transport.cookies import KeptCookie
from pytest_captcha_qa.transport.faults import KINDS
from pytest_captcha_qa.transport.payload import NO_PAYLOAD, File, Payload, json_body, multipart, urlencoded
from pytest_captcha_qa.transport.reply import Reply

__all__ = [
    "ANSWER_LIMIT",
    "KINDS",
    "NO_PAYLOAD",
    "PAGE_LIMIT",
    "File",
    "HttpAccess",
    "HttpClient",
    "KeptCookie",
    "Payload",
    "Permission",
    "ProofFetch",
    "Reply",
    "json_body",
    "multipart",
    "urlencoded",
]
