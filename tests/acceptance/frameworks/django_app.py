"""A Django site whose forms are protected by public libraries, each used as its own documentation says.

It prints its port. `VENDOR_URL` and `VENDOR_HTTPS` are the vendor's addresses, which are set as docs/standin.md says;
`PROOFS` is the folder it serves proofs from.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import NamedTuple
from urllib.parse import urlsplit
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import django
from django import forms
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import FileResponse, Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.template import engines
from django.urls import path
from django.utils.html import format_html
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

PATIENCE = 1  # seconds a form waits for the vendor
SCORE = 0.5
ACTION = "signup"


def keys(name: str) -> dict[str, str]:
    """Return a pair of a sitekey and a secret of a form's own, of Google's shape."""
    return {"public_key": f"6Ldjango{name}".ljust(40, "K"), "private_key": f"6Ldjango{name}secret".ljust(40, "S")}


settings.configure(
    SECRET_KEY="test-only",
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=["django_recaptcha", "hcaptcha", "rest_framework", "drf_recaptcha"],
    MIDDLEWARE=[
        "django.middleware.security.SecurityMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware",
    ],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
    REST_FRAMEWORK={"UNAUTHENTICATED_USER": None, "DEFAULT_AUTHENTICATION_CLASSES": []},
    RECAPTCHA_DOMAIN=urlsplit(os.environ["VENDOR_HTTPS"]).netloc,
    RECAPTCHA_VERIFY_REQUEST_TIMEOUT=PATIENCE,
    DRF_RECAPTCHA_DOMAIN=urlsplit(os.environ["VENDOR_HTTPS"]).netloc,
    DRF_RECAPTCHA_VERIFY_REQUEST_TIMEOUT=PATIENCE,
    DRF_RECAPTCHA_SECRET_KEY=keys("drf")["private_key"],
    HCAPTCHA_VERIFY_URL=f"{os.environ['VENDOR_URL']}/siteverify",
    HCAPTCHA_TIMEOUT=PATIENCE,
    HCAPTCHA_SITEKEY="a5f74b19-9e45-40e0-b45d-47ff91b7a6c2",
    HCAPTCHA_SECRET="ES_of_the_django_site",
)
django.setup()

from django_recaptcha.fields import ReCaptchaField  # noqa: E402
from django_recaptcha.widgets import ReCaptchaV2Checkbox, ReCaptchaV3  # noqa: E402
from drf_recaptcha.fields import ReCaptchaV2Field, ReCaptchaV3Field  # noqa: E402
from friendly_captcha_client.client import FriendlyCaptchaClient  # noqa: E402
from hcaptcha.fields import hCaptchaField  # noqa: E402
from rest_framework import serializers  # noqa: E402
from rest_framework.response import Response  # noqa: E402
from rest_framework.views import APIView  # noqa: E402

logging.disable(logging.CRITICAL)  # crashes are what is tested here
PAGE = engines["django"].from_string("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{ title }}</title>{{ head|safe }}</head><body><h1>{{ title }}</h1>
{% if form %}<form method="post" novalidate>{% csrf_token %}{{ form.as_p }}<button>Go</button></form>{% endif %}
</body></html>""")
FRIENDLY = '<script type="module" src="https://cdn.jsdelivr.net/npm/@friendlycaptcha/sdk/site.min.js" async></script>'
V3_PAGE = f"""<script src="https://www.google.com/recaptcha/api.js?render={keys("drf")["public_key"]}"></script>
<script>async function send(fields) {{
  const recaptcha = await grecaptcha.execute("{keys("drf")["public_key"]}", {{action: "{ACTION}"}});
  await fetch("/api/drf/", {{method: "POST", body: JSON.stringify({{...fields, recaptcha}})}});
}}</script>"""


class FriendlyWidget(forms.Widget):
    """The vendor's container, whose script adds the hidden field."""

    def value_from_datadict(self, data, files, name):
        return data.get("frc-captcha-response")

    def render(self, name, value, attrs=None, renderer=None):
        return format_html('<div class="frc-captcha" data-sitekey="{}"></div>', self.attrs["key"])


class FriendlyField(forms.Field):
    """Asks the vendor's own client, as its README does: the client says whether to accept."""

    def __init__(self, sitekey, **options):
        super().__init__(widget=FriendlyWidget({"key": sitekey}), required=False)
        self.client = FriendlyCaptchaClient(
            api_key=f"{sitekey}-api-key", sitekey=sitekey, api_endpoint=os.environ["VENDOR_HTTPS"], **options
        )

    def validate(self, value):
        if not self.client.verify_captcha_response(value, timeout=PATIENCE).should_accept:
            raise forms.ValidationError("Anti-robot check failed, please try again.")


class Signup(forms.Form):
    email = forms.EmailField()
    full_name = forms.CharField(max_length=60)


class RecaptchaV2(Signup):
    captcha = ReCaptchaField(widget=ReCaptchaV2Checkbox, **keys("v2"))


class RecaptchaV3(Signup):
    captcha = ReCaptchaField(widget=ReCaptchaV3(action=ACTION, required_score=SCORE), **keys("v3"))


class Mended(Signup):
    captcha = ReCaptchaField(widget=ReCaptchaV2Checkbox, **keys("mended"))


class AnyScore(Signup):
    captcha = ReCaptchaField(widget=ReCaptchaV3(action=ACTION), **keys("any"))


class HCaptcha(Signup):
    captcha = hCaptchaField()


class Friendly(Signup):
    captcha = FriendlyField("FCMDJANGODEFAULT")


class FriendlyStrict(Signup):
    captcha = FriendlyField("FCMDJANGOSTRICT0", strict=True)


class DrfSignup(serializers.Serializer):
    email = serializers.EmailField()
    full_name = serializers.CharField(max_length=60)
    recaptcha = ReCaptchaV3Field(action=ACTION, required_score=SCORE)


class DrfSignupV2(DrfSignup):
    recaptcha = ReCaptchaV2Field(secret_key=keys("drf2")["private_key"])


class Protected(NamedTuple):
    """A form, the field that holds its token, and what stands in the head of its page."""

    form: type
    field: str
    sitekey: str
    type: str
    head: str = ""


FORMS = {
    "recaptcha-v2": Protected(RecaptchaV2, "g-recaptcha-response", keys("v2")["public_key"], "recaptcha_v2"),
    "recaptcha-v3": Protected(RecaptchaV3, "captcha", keys("v3")["public_key"], "recaptcha_v3"),
    "hcaptcha": Protected(HCaptcha, "h-captcha-response", settings.HCAPTCHA_SITEKEY, "hcaptcha"),
    "friendly": Protected(Friendly, "frc-captcha-response", "FCMDJANGODEFAULT", "friendly_v2", FRIENDLY),
    "friendly-strict": Protected(FriendlyStrict, "frc-captcha-response", "FCMDJANGOSTRICT0", "friendly_v2", FRIENDLY),
    "mended": Protected(Mended, "g-recaptcha-response", keys("mended")["public_key"], "recaptcha_v2"),
    "recaptcha-v3-any-score": Protected(AnyScore, "captcha", keys("any")["public_key"], "recaptcha_v3"),
    "drf-v2": Protected(DrfSignupV2, "recaptcha", keys("drf2")["public_key"], "recaptcha_v2"),
    "drf": Protected(DrfSignup, "recaptcha", keys("drf")["public_key"], "recaptcha_v3", V3_PAGE),
}


def page(request, title, form=None, head=""):
    return HttpResponse(PAGE.render({"title": title, "form": form, "head": head}, request))


@require_http_methods(["GET", "POST"])
def signup(request, name):
    if name not in FORMS:
        raise Http404
    protected = FORMS[name]
    form = protected.form(request.POST or None)
    if request.method == "POST" and form.is_valid():
        return redirect("/welcome/")
    return page(request, "Sign up", form, protected.head)


def mended(request):
    """The same, with what docs/conformance.md says of crashes."""
    try:
        return signup(request, "mended")
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        return HttpResponse("Please try again in a minute.", status=503)


class Api(APIView):
    def post(self, request):
        serializer = DrfSignup(data=request.data, context={"request": request})
        serializer.is_valid(raise_exception=True)
        return Response({"ok": True}, 201)


@csrf_exempt
def direct(request, name):
    """Give a library the posted `token`, of any JSON type, as the value of its field, and tell what it makes of it."""
    protected, posted = FORMS[name], json.loads(request.body)
    data = {"email": "direct@example.com", "full_name": "Direct"}
    if "token" in posted:
        data[protected.field] = posted["token"]
    more = {"context": {"request": request}} if issubclass(protected.form, DrfSignup) else {}
    try:
        return JsonResponse({"letter": "A" if protected.form(data=data, **more).is_valid() else "R"})
    except Exception as crash:  # noqa: BLE001  # whatever a library lets through is a 500 on its form
        return JsonResponse({"letter": "X", "why": f"{type(crash).__name__}: {crash}"})


def proof(request, name):
    return FileResponse((Path(os.environ["PROOFS"]) / name).open("rb"), content_type="text/plain")


urlpatterns = [
    path(".well-known/captcha-qa/<slug:name>.txt", lambda request, name: proof(request, f"{name}.txt")),
    path("welcome/", lambda request: page(request, "Welcome")),
    path("drf/", lambda request: page(request, "Sign up", head=V3_PAGE)),
    path("api/drf/", Api.as_view()),
    path("direct/<slug:name>/", direct),
    path("forms/", lambda request: JsonResponse({name: [it.type, it.sitekey] for name, it in FORMS.items()})),
    path("mended/", mended),
    path("<slug:name>/", signup),
]


class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        pass


class Threaded(ThreadingMixIn, WSGIServer):
    daemon_threads = True


if __name__ == "__main__":
    server = make_server("127.0.0.1", 0, get_wsgi_application(), Threaded, Quiet)
    print(server.server_port, flush=True)
    server.serve_forever()
