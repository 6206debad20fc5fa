"""A shop on FastAPI, as a team would write it: `python fastapi_app.py`, configured by variables.

A single-page sign-up that posts JSON with a double-submit CSRF header; a newsletter that answers at once and verifies
later; an endpoint that says what a token is worth.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import urllib.parse
import urllib.request
from typing import Annotated

import uvicorn
from fastapi import BackgroundTasks, Cookie, Depends, FastAPI, Form, Header, HTTPException, Request, Response, status
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

VERIFY = f"{os.environ['VENDOR_URL']}/turnstile/v0/siteverify"
SITEKEY, SECRET = os.environ["TURNSTILE_SITEKEY"], os.environ["TURNSTILE_SECRET"]
SCRIPT = '<script src="https://challenges.cloudflare.com/turnstile/v0/api.js" async defer></script>'
WIDGET = f'<div class="cf-turnstile" data-sitekey="{SITEKEY}" data-action="{{action}}"></div>'

app = FastAPI(docs_url=None, redoc_url=None)
USERS: dict[str, str] = {}
UNDER_WAY: set[str] = set()
CAMPAIGNS: dict[str, str | None] = {}
SUBSCRIBED: dict[str, bool] = {}


class SignUp(BaseModel):
    email: str = Field(pattern=r"^[^@\s]+@[^@\s]+$")
    name: str = Field(min_length=1, max_length=60)
    captcha_token: str = Field(alias="captchaToken", default="")
    campaign: str | None = None
    terms: bool


class Created(BaseModel):
    ok: bool = True
    email: str


def is_human(token: str, action: str, address: str | None) -> bool:
    """Ask Cloudflare about the token, and compare the action, as its documentation says."""
    if not token:
        return False
    body = urllib.parse.urlencode({"secret": SECRET, "response": token, "remoteip": address or ""})
    with urllib.request.urlopen(VERIFY, data=body.encode(), timeout=5) as reply:
        outcome = json.load(reply)
    return outcome["success"] is True and outcome.get("action") == action


def csrf_cookie(response: Response, xsrf: Annotated[str | None, Cookie(alias="XSRF-TOKEN")] = None) -> str:
    """Return the visitor's CSRF token, which its scripts can read."""
    token = xsrf or secrets.token_urlsafe(24)
    response.set_cookie("XSRF-TOKEN", token, samesite="lax")
    return token


def same_site_only(
    xsrf: Annotated[str, Cookie(alias="XSRF-TOKEN")] = "", header: Annotated[str, Header(alias="X-XSRF-TOKEN")] = ""
) -> None:
    """Refuse a request whose header does not repeat the cookie: no other site can read it."""
    if not xsrf or not secrets.compare_digest(xsrf, header):
        raise HTTPException(status.HTTP_403_FORBIDDEN, {"code": "csrf"})


@app.get("/signup", response_class=HTMLResponse, dependencies=[Depends(csrf_cookie)])
def signup_page() -> str:
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Sign up</title>{SCRIPT}
<script type="module" src="/static/app.js"></script></head>
<body><div id="app"><h1>Sign up</h1><input v-model="email"><input v-model="name">{WIDGET.format(action="signup")}
<button @click="send">Create account</button></div></body></html>"""


@app.post("/api/signup", status_code=status.HTTP_201_CREATED, dependencies=[Depends(same_site_only)])
def signup(wanted: SignUp, request: Request, tasks: BackgroundTasks) -> Created:
    if not is_human(wanted.captcha_token, "signup", request.client.host if request.client else None):
        raise HTTPException(status.HTTP_422_UNPROCESSABLE_CONTENT, {"code": "captcha", "message": "Are you human?"})
    if wanted.email in USERS:
        raise HTTPException(status.HTTP_409_CONFLICT, {"code": "taken"})
    UNDER_WAY.add(wanted.email)
    tasks.add_task(create_account, wanted)
    return Created(email=wanted.email)


async def create_account(wanted: SignUp) -> None:
    """Create the account, which takes a moment: the visitor is not kept waiting for it."""
    await asyncio.sleep(0.3)
    USERS[wanted.email] = wanted.name
    CAMPAIGNS[wanted.email] = wanted.campaign
    UNDER_WAY.discard(wanted.email)


@app.get("/api/users/{email}")
def user(email: str) -> Created:
    if email not in USERS:
        raise HTTPException(status.HTTP_404_NOT_FOUND)
    return Created(email=email)


@app.get("/newsletter", response_class=HTMLResponse)
def newsletter_page(csrf: Annotated[str, Depends(csrf_cookie)]) -> str:
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>News</title>{SCRIPT}</head><body>
<form method="post" action="/newsletter"><input type="hidden" name="csrf" value="{csrf}">
<input type="email" name="email">{WIDGET.format(action="news")}<button>Subscribe</button></form></body></html>"""


@app.post("/newsletter", response_class=HTMLResponse, status_code=status.HTTP_202_ACCEPTED)
def newsletter(
    tasks: BackgroundTasks,
    email: Annotated[str, Form()],
    csrf: Annotated[str, Form()],
    token: Annotated[str, Form(alias="cf-turnstile-response")] = "",
    xsrf: Annotated[str, Cookie(alias="XSRF-TOKEN")] = "",
) -> str:
    same_site_only(xsrf, csrf)

    def subscribe() -> None:
        SUBSCRIBED[email] = is_human(token, "news", None)

    tasks.add_task(subscribe)
    return "<p>Thank you, we look into it.</p>"


@app.get("/qa/captcha")
def recorded(email: str) -> dict[str, bool | None]:
    return {"passed": SUBSCRIBED.get(email)}


@app.post("/qa/verify")
def verify(action: str, token: Annotated[str, Form(alias="cf-turnstile-response")] = "") -> dict[str, bool]:
    return {"success": is_human(token, action, None)}


@app.get("/audit")
async def audit() -> dict[str, object]:
    """Return what was done, once what is under way is done too."""
    async with asyncio.timeout(5):
        while UNDER_WAY:
            await asyncio.sleep(0.05)
    return {"users": list(USERS), "campaigns": list(CAMPAIGNS.values()), "subscribed": list(SUBSCRIBED.values())}


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
