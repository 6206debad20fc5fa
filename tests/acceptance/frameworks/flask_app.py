"""A shop on Flask, as a team would write it: `python flask_app.py`, configured by variables.

Sign-in before the form, a checkout in two steps, a page with several widgets, one that posts JSON, an application with
a file. Where SITE_AUTH is set, all of it stands behind basic authentication, as staging sites do.
"""

from __future__ import annotations

import functools
import hmac
import json
import os
import urllib.parse
import urllib.request

from flask import Flask, Response, flash, redirect, render_template, request, send_from_directory, session, url_for
from flask_wtf import CSRFProtect, FlaskForm, RecaptchaField
from flask_wtf.file import FileAllowed, FileField, FileRequired
from flask_wtf.recaptcha import Recaptcha
from werkzeug.serving import WSGIRequestHandler, make_server
from wtforms import EmailField, PasswordField, StringField, TextAreaField
from wtforms.validators import DataRequired, InputRequired, Length

VENDOR = os.environ["VENDOR_URL"]

app = Flask(__name__)
app.config.update(
    SECRET_KEY=os.urandom(32),
    SESSION_COOKIE_SAMESITE="Lax",
    MAX_CONTENT_LENGTH=1 << 20,
    RECAPTCHA_PUBLIC_KEY=os.environ["RECAPTCHA_SITEKEY"],
    RECAPTCHA_PRIVATE_KEY=os.environ["RECAPTCHA_SECRET"],
    RECAPTCHA_VERIFY_SERVER=f"{VENDOR}/recaptcha/api/siteverify",
    TURNSTILE_KEYS={
        "contact": (os.environ["TURNSTILE_SITEKEY"], os.environ["TURNSTILE_SECRET"]),
        "news": (os.environ["TURNSTILE_SITEKEY_2"], os.environ["TURNSTILE_SECRET_2"]),
    },
    ACCOUNTS={"qa": os.environ["QA_PASSWORD"]},
    SITE_AUTH=os.environ.get("SITE_AUTH"),
    PROOFS=os.environ.get("PROOFS"),
)
CSRFProtect(app)
DONE: dict[str, list[str]] = {"invited": [], "paid": [], "asked": [], "subscribed": [], "applied": [], "told": []}


class LoginForm(FlaskForm):
    username = StringField(validators=[DataRequired()])
    password = PasswordField(validators=[DataRequired()])


class InviteForm(FlaskForm):
    email = EmailField(validators=[InputRequired(), Length(max=200)])
    recaptcha = RecaptchaField(validators=[Recaptcha("Please show that you are human.")])


class AddressForm(FlaskForm):
    street = StringField(validators=[DataRequired()])
    city = StringField(validators=[DataRequired()])


class PaymentForm(FlaskForm):
    email = EmailField(validators=[InputRequired()])
    holder = StringField(validators=[DataRequired()])


class ContactForm(FlaskForm):
    email = EmailField(validators=[InputRequired()])
    message = TextAreaField(validators=[Length(min=3)])


class ApplicationForm(FlaskForm):
    email = EmailField(validators=[InputRequired()])
    cv = FileField(validators=[FileRequired(), FileAllowed(["txt", "pdf"])])
    recaptcha = RecaptchaField(validators=[Recaptcha("Please show that you are human.")])


def human(action: str, token: str | None) -> bool:
    """Ask Cloudflare about the token, and compare the action, as its documentation says."""
    if not token:
        return False
    secret = app.config["TURNSTILE_KEYS"]["news" if action == "news" else "contact"][1]
    body = urllib.parse.urlencode({"secret": secret, "response": token, "remoteip": request.remote_addr})
    with urllib.request.urlopen(f"{VENDOR}/turnstile/v0/siteverify", data=body.encode(), timeout=5) as reply:
        outcome = json.load(reply)
    return outcome["success"] is True and outcome.get("action") == action


def login_required(view):
    @functools.wraps(view)
    def guarded(*args, **kwargs):
        if "user" not in session:
            return redirect(url_for("login"))
        return view(*args, **kwargs)

    return guarded


@app.before_request
def staging_only():
    """Keep strangers out of the whole site, if it has a password."""
    if not app.config["SITE_AUTH"] or request.endpoint == "audit":
        return None
    given = request.authorization
    text = f"{given.username}:{given.password}" if given and given.type == "basic" else ""
    if hmac.compare_digest(text.encode(), app.config["SITE_AUTH"].encode()):
        return None
    return Response("Staging", 401, {"WWW-Authenticate": 'Basic realm="staging"'}, content_type="text/plain")


@app.get("/")
def home():
    return render_template("base.html")


@app.route("/login", methods=["GET", "POST"])
def login():
    form = LoginForm()
    if form.validate_on_submit():
        password = app.config["ACCOUNTS"].get(form.username.data)
        if password and hmac.compare_digest(password, form.password.data):
            session.clear()
            session["user"] = form.username.data
            return redirect(url_for("home"))
        flash("Unknown user or wrong password.")
    return render_template("form.html", form=form, title="Log in")


@app.route("/invite", methods=["GET", "POST"])
@login_required
def invite():
    form = InviteForm()
    if form.validate_on_submit():
        DONE["invited"].append(f"{form.email.data} by {session['user']}")
        return redirect(url_for("home"))
    return render_template("form.html", form=form, title="Invite a friend")


@app.route("/checkout/address", methods=["GET", "POST"])
def address():
    form = AddressForm()
    if form.validate_on_submit():
        session["address"] = f"{form.street.data}, {form.city.data}"
        return redirect(url_for("payment"))
    return render_template("form.html", form=form, title="Where to?")


@app.route("/checkout/payment", methods=["GET", "POST"])
def payment():
    if "address" not in session:
        return redirect(url_for("address"))
    form = PaymentForm()
    if form.validate_on_submit():
        if human("pay", request.form.get("cf-turnstile-response")):
            DONE["paid"].append(f"{form.email.data} to {session['address']}")
            return redirect(url_for("home", _anchor="paid"))
        flash("Please show that you are human.")
    key = app.config["TURNSTILE_KEYS"]["contact"][0]
    return render_template("form.html", form=form, title="Payment", key=key, action="pay")


@app.route("/contact", methods=["GET", "POST"])
def contact():
    form = ContactForm()
    if form.validate_on_submit():
        if human("contact", request.form.get("cf-turnstile-response")):
            DONE["asked"].append(f"{form.email.data}: {form.message.data}")
            return redirect(url_for("home"))
        flash("Please show that you are human.")
    return render_template("contact.html", form=form, keys=app.config["TURNSTILE_KEYS"])


@app.post("/news")
def news():
    if not human("news", request.form.get("cf-turnstile-response")):
        flash("Please show that you are human.")
        return redirect(url_for("contact"))
    DONE["subscribed"].append(request.form["email"])
    return redirect(url_for("home"))


@app.get("/feedback")
def feedback():
    return render_template("feedback.html", key=app.config["TURNSTILE_KEYS"]["contact"][0])


@app.post("/api/feedback")
def api_feedback():
    wanted = request.get_json()
    if not human("feedback", wanted.get("turnstile")):
        return {"error": "captcha"}, 400
    DONE["told"].append(wanted["text"])
    return {"error": None, "stored": True}


@app.route("/jobs", methods=["GET", "POST"])
def jobs():
    form = ApplicationForm()
    if form.validate_on_submit():
        size = len(form.cv.data.read())
        DONE["applied"].append(f"{form.email.data} with {form.cv.data.filename} ({size})")
        return redirect(url_for("home"))
    enctype = "multipart/form-data"
    return render_template("form.html", form=form, title="Work with us", enctype=enctype)


@app.get("/.well-known/captcha-qa/<name>")
def proof(name):
    return send_from_directory(app.config["PROOFS"] or app.root_path, name, mimetype="text/plain")


@app.get("/audit")
def audit():
    return DONE


class Quiet(WSGIRequestHandler):
    def log(self, *args):
        pass


if __name__ == "__main__":
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    print(server.server_port, flush=True)
    server.serve_forever()
