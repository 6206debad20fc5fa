"""A site whose forms are sent by scripts of its pages, as a team would write it: `python scripted_site.py VENDOR_URL`.

It prints its address. What it knows of a run is at /seen.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import urllib.parse
import urllib.request
from collections import Counter
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from pytest_captcha_qa.sandbox.keys import TURNSTILE

CSRF = "a=b/c d"
ACCOUNTS: list[str] = []
LANGUAGES: list[str] = []
ASKED: Counter[str] = Counter()
WIDGET = f'<div class="cf-turnstile" data-sitekey="{TURNSTILE.sitekey}"></div>'
APP = f'<!doctype html><html><body><div id="app"></div>{WIDGET}</body></html>'
FORM = f"""<!doctype html><html><body><form method="post" enctype="multipart/form-data">
<input name="email"><input type="file" name="avatar">{WIDGET}<button>Send</button></form></body></html>"""
LOGIN = '<!doctype html><html><body><form method="post"><input type="password" name="pw"></form></body></html>'


async def is_good(token: object) -> bool:
    def ask() -> bool:
        data = urllib.parse.urlencode({"secret": TURNSTILE.secret, "response": str(token)}).encode()
        with urllib.request.urlopen(f"{sys.argv[1]}/turnstile/v0/siteverify", data, timeout=10) as answer:
            return bool(json.load(answer)["success"])

    return bool(token) and await asyncio.to_thread(ask)


async def page(request: Request) -> Response:
    LANGUAGES.append(request.headers.get("accept-language", ""))
    response = HTMLResponse(APP)
    response.set_cookie("XSRF-TOKEN", urllib.parse.quote(CSRF, safe=""), path="/")
    return response


async def signup(request: Request) -> Response:
    said: dict[str, Any] = await request.json()
    LANGUAGES.append(request.headers.get("accept-language", ""))
    if request.headers.get("x-xsrf-token") != CSRF:
        return JSONResponse({"code": "csrf"}, 419)
    if not await is_good(said["captcha"].get("token")):
        return JSONResponse({"code": "captcha"}, 422)
    ACCOUNTS.append(said["user"]["email"])
    return JSONResponse({"data": {"ok": said["terms"] is True}}, 201)


async def graphql(request: Request) -> Response:
    said: dict[str, Any] = await request.json()
    given = said["variables"]["input"]
    if "mutation" not in said["query"] or not await is_good(given.get("captchaToken")):
        return JSONResponse({"errors": [{"extensions": {"code": "CAPTCHA"}}]})
    return JSONResponse({"data": {"signup": {"email": given["email"]}}})


async def upload(request: Request) -> Response:
    async with request.form() as form:
        file, token = form["avatar"], form.get("captcha") or form.get("cf-turnstile-response")
        content = "" if isinstance(file, str) else f"{file.filename} {(await file.read()).decode()}"
    if not await is_good(token):
        return JSONResponse({"code": "captcha"}, 422)
    return JSONResponse({"got": content})


async def avatar(request: Request) -> Response:
    return HTMLResponse(FORM) if request.method == "GET" else await upload(request)


async def cart(request: Request) -> Response:
    response = JSONResponse({"checkout": "/checkout"})
    response.set_cookie("cart", (await request.form())["email"])  # type: ignore[arg-type]
    return response


async def checkout(request: Request) -> Response:
    return HTMLResponse(APP) if request.cookies.get("cart") else RedirectResponse("/login", 302)


async def login(request: Request) -> Response:
    return HTMLResponse(LOGIN)


async def order(request: Request) -> Response:
    form = await request.form()
    good = await is_good(form.get("token")) and request.cookies.get("cart") == form.get("email")
    return JSONResponse({"ordered": good}, 200 if good else 422)


async def mailbox(request: Request) -> Response:
    email = request.query_params["email"]
    ASKED[email] += 1
    there = email in ACCOUNTS and ASKED[email] > 1  # mail takes a moment
    return JSONResponse({"mails": [{"subject": "Welcome"}] if there else []})


async def remove(request: Request) -> Response:
    email = (await request.json())["email"]
    if email not in ACCOUNTS:
        return JSONResponse({}, 404)
    ACCOUNTS.remove(email)
    return JSONResponse({})


async def seen(request: Request) -> Response:
    return JSONResponse({"accounts": ACCOUNTS, "languages": LANGUAGES})


ROUTES = [
    Route("/spa", page), Route("/api/signup", signup, methods=["POST"]), Route("/graphql", graphql, methods=["POST"]),
    Route("/upload", upload, methods=["POST"]), Route("/avatar", avatar, methods=["GET", "POST"]),
    Route("/cart", cart, methods=["POST"]), Route("/checkout", checkout), Route("/login", login),
    Route("/order", order, methods=["POST"]), Route("/mailbox", mailbox), Route("/seen", seen),
    Route("/remove", remove, methods=["POST"]),
]  # fmt: skip

if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        server = uvicorn.Server(uvicorn.Config(Starlette(routes=ROUTES), log_level="error"))
        server.run(sockets=[listening])
