"""A small Django site with a protected sign-up, as a team would write it: `python site_app.py PORT SITEVERIFY_URL`."""

from __future__ import annotations

import json
import sys
import urllib.parse
import urllib.request
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.template import engines
from django.urls import path

SITEKEY = "6LdjangoSiteAAAAAJm2xkQ0vR1p8yTzW3bNcDfGhKlM"
SECRET = "6LdjangoSiteAAAAAsecretsecretsecretsecretsec"

settings.configure(
    SECRET_KEY="test-only",
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=["django.contrib.sessions", "django.contrib.messages"],
    MIDDLEWARE=[
        "django.middleware.security.SecurityMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware",
    ],
    SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "OPTIONS": {"context_processors": ["django.contrib.messages.context_processors.messages"]},
        }
    ],
)
django.setup()

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{ title }}</title>
<script src="https://www.google.com/recaptcha/api.js" async defer></script></head>
<body>
<nav><form action="/search/" method="get"><input name="q" type="search"><button>Search</button></form></nav>
{% for message in messages %}<p class="{{ message.tags }}">{{ message }}</p>{% endfor %}
{% if form %}
<h1>Sign up</h1>
<form method="post" novalidate>{% csrf_token %}
  {{ form.as_p }}
  <div class="g-recaptcha" data-sitekey="{{ sitekey }}"></div>
  <button type="submit" name="do" value="signup">Create account</button>
</form>
{% else %}<h1>{{ title }}</h1>{% endif %}
<footer><form action="/newsletter/" method="post">{% csrf_token %}
  <input type="email" name="email" value="someone@example.com"><button>Subscribe</button></form></footer>
</body></html>"""

CREATED: list[str] = []
SUBSCRIBED: list[str] = []


class SignupForm(forms.Form):
    email = forms.EmailField()
    full_name = forms.CharField(max_length=60)
    plan = forms.ChoiceField(choices=[("free", "Free"), ("pro", "Pro")])
    terms = forms.BooleanField(initial=True)


def page(request, title, form=None):
    template = engines["django"].from_string(PAGE)
    return HttpResponse(template.render({"title": title, "form": form, "sitekey": SITEKEY}, request))


def human(request):
    """Ask the vendor about the token, as its documentation says."""
    token = request.POST.get("g-recaptcha-response")
    if not token:
        return False
    body = urllib.parse.urlencode({"secret": SECRET, "response": token, "remoteip": request.META["REMOTE_ADDR"]})
    with urllib.request.urlopen(SITEVERIFY, data=body.encode(), timeout=5) as reply:
        return json.load(reply)["success"] is True


def signup(request):
    form = SignupForm(request.POST or None)
    if request.method == "POST":
        if not human(request):
            messages.error(request, "Please show that you are human.")
        elif form.is_valid():
            CREATED.append(form.cleaned_data["email"])
            messages.success(request, "Your account was created.")
            return redirect("/welcome/")
    return page(request, "Sign up", form)


def newsletter(request):
    SUBSCRIBED.append(request.POST.get("email", ""))
    return redirect("/")


def audit(request):
    return JsonResponse({"created": CREATED, "subscribed": SUBSCRIBED})


urlpatterns = [
    path("signup/", signup),
    path("welcome/", lambda request: page(request, "Welcome")),
    path("newsletter/", newsletter),
    path("search/", lambda request: page(request, "Search")),
    path("audit/", audit),
]


class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        pass


if __name__ == "__main__":
    SITEVERIFY = sys.argv[2]
    server = make_server("127.0.0.1", int(sys.argv[1]), get_wsgi_application(), handler_class=Quiet)
    print(server.server_port, flush=True)
    server.serve_forever()
