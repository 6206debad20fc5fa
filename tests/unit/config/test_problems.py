"""A table of mistakes, and a piece of the sentence each of them gets."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from pytest_captcha_qa.config.settings import Settings
from pytest_captcha_qa.errors import ConfigError

Loader = Callable[..., Settings]

# What stands in small.toml, what is put in its place, and a piece of the sentence.
MISTAKES: dict[str, tuple[str, str, str]] = {
    "unknown table": (
        "[forms.signup]",
        "[form.signup]",
        "form: there is no such table; did you mean 'forms'?",
    ),
    "extensions that are no list": (
        "[accounts.main]",
        'extensions = "qa"\n[accounts.main]',
        'extensions: must be a list of modules of yours, such as ["qa.captcha"]',
    ),
    "an extension that is a function": (
        "[accounts.main]",
        'extensions = ["qa.captcha:fields"]\n[accounts.main]',
        "extensions: 'qa.captcha:fields' is no module, such as qa.captcha",
    ),
    "an extension named twice": (
        "[accounts.main]",
        'extensions = ["qa", "qa"]\n[accounts.main]',
        "extensions: names 'qa' twice",
    ),
    "a provider without extensions": (
        '"captchaai"',
        '"quickcaptcha"',
        "sandbox, standin; one of your own needs `extensions`",
    ),
    "a name that no provider can have": (
        '"captchaai"',
        '"Not A Name"',
        "accounts.main.provider: is no name of a provider; there are: captchaai, capskip",
    ),
    "times of an extension's provider": (
        "[accounts.main]",
        'extensions = []\n[accounts.x]\nprovider = "x"\ntime_scale = 0.1\n[accounts.main]',
        "accounts.x.time_scale: is for the sandbox only",
    ),
    "section that is no table": (
        "[accounts.main]",
        "projects = 3\n[accounts.main]",
        "projects: must hold tables",
    ),
    "account that is no table": (
        "[accounts.main]",
        "[accounts]\nx = 1\n[accounts.main]",
        "accounts.x: must be a table",
    ),
    "name with a slash": ("[env.staging]", '[env."../x"]', "env.../x: is no usable name"),
    "unknown provider": (
        '"captchaai"',
        '"captcha-ai"',
        "did you mean 'captchaai'? allowed: captchaai, capskip",
    ),
    "no provider": ('provider = "captchaai"', "", "accounts.main.provider: is missing: one of captchaai"),
    "no key": (
        'api_key_env = "CAPTCHAAI_API_KEY"',
        "",
        "api_key_env: is missing: captchaai needs the variable",
    ),
    "two keys": ("[env.staging]", 'api_key_file = "k"\n[env.staging]', "say the same thing; keep one"),
    "key for test keys": ('"captchaai"', '"testkeys"', "means nothing for testkeys, which has no key"),
    "address of a cloud": ("[env.staging]", 'url_env = "U"\n[env.staging]', "its address is fixed"),
    "stand-in without address": (
        '"captchaai"',
        '"standin"',
        "standin needs the variable that holds its address",
    ),
    "time scale of a cloud": (
        "[env.staging]",
        "time_scale = 0.1\n[env.staging]",
        "nobody can make captchaai solve faster",
    ),
    "solves in no time": (
        'provider = "captchaai"\napi_key_env = "CAPTCHAAI_API_KEY"',
        'provider = "sandbox"\ntime_scale = 0',
        "time_scale: must be more than 0",
    ),
    "proxy of the sandbox": ('"captchaai"', '"sandbox"\nsolver_proxy_env = "P"', "solves nothing on the web"),
    "reports to the sandbox": ('"captchaai"', '"sandbox"\nreport = true', "whose tokens nobody is paid for"),
    "no slots": (
        "[env.staging]",
        "max_in_flight = 0\n[env.staging]",
        "max_in_flight: must be at least 1, not '0'",
    ),
    "slots as text": (
        "[env.staging]",
        'max_in_flight = "9"\n[env.staging]',
        "must be a whole number, not a text",
    ),
    "slots as flag": (
        "[env.staging]",
        "max_in_flight = true\n[env.staging]",
        "a whole number, not true or false",
    ),
    "unknown kind": ('"staging"', '"stagin"', "'stagin' is not known; did you mean 'staging'? allowed: demo"),
    "kind as number": ('kind = "staging"', "kind = 1", "env.staging.kind: '1' is not known; allowed: demo"),
    "no kind": ('kind = "staging"', "", "env.staging.kind: is missing: one of demo, qa, staging, production"),
    "no origins": (
        'origins = ["https://staging.shop.example"]',
        "",
        "origins: is missing: the origins you own",
    ),
    "empty origins": ('["https://staging.shop.example"]', "[]", "origins: must not be empty"),
    "origins as text": (
        '["https://staging.shop.example"]',
        '"https://a.example"',
        'must be a list: ["https://a.example"]',
    ),
    "origin with path": (
        "shop.example",
        "shop.example/x",
        "write the origin as https://staging.shop.example",
    ),
    "origin in capitals": ("staging.shop.example", "Staging.shop.example", "write its host in lower case"),
    "wildcard in the middle": (
        "https://staging.",
        "https://a.*.",
        "is no usable origin: its host is not a valid name",
    ),
    "wildcard of a whole domain": ("staging.shop.example", "*.example", "at least two more labels"),
    "unknown account": ('account = "main"', 'account = "mian"', "'mian' is no account; did you mean 'main'?"),
    "base elsewhere": (
        "account =",
        'base_url = "https://x.example"\naccount =',
        "https://x.example is not among origins",
    ),
    "base twice": (
        "account =",
        'base_url = "https://staging.shop.example"\nbase_url_env = "B"\naccount =',
        "keep one",
    ),
    "base with query": (
        "account =",
        'base_url = "https://staging.shop.example/?a=1"\naccount =',
        "must not have a query",
    ),
    "base missing": ("https://staging.", "https://*.", "base_url: is missing: say which of the origins"),
    "release twice": (
        "account =",
        'release_env = "R"\nrelease_file = "r"\naccount =',
        "release_env and release_file",
    ),
    "release from two": (
        "account =",
        'release_from = { path = "/v", json = "a", header = "b" }\naccount =',
        "needs one of json",
    ),
    "retry interval": (
        "account =",
        "retry_interval = 0\naccount =",
        "retry_interval: cannot be 0: the retry interval",
    ),
    "retry interval below the lease": (
        "account =",
        "retry_interval = 9\naccount =",
        "retry_interval: cannot be 9: all retries are over after 27 s, while a worker that crashed holds its key",
    ),
    "retry interval infinite": ("account =", "retry_interval = inf\naccount =", "must be an ordinary number"),
    "store loss": ("account =", 'on_store_loss = "go"\naccount =', "allowed: continue, owned, stop"),
    "identity": (
        "account =",
        'identity = { domain = "@shop" }\naccount =',
        "identity.domain: is no usable domain",
    ),
    "http typo": (
        "account =",
        'http = { basic_auth_evn = "A" }\naccount =',
        "did you mean 'basic_auth_env'?",
    ),
    "client key": (
        "account =",
        'http = { client_key_file = "k" }\naccount =',
        "put certificate and key into one PEM file",
    ),
    "extends nothing": (
        "account =",
        'extends = "q"\naccount =',
        "env.staging.extends: names 'q', which is no environment",
    ),
    "extends itself": ("account =", 'extends = "staging"\naccount =', "in a circle: staging extends staging"),
    "extends two": ("account =", 'extends = ["a"]\naccount =', "must be the name of one other environment"),
    "own demo": ("[env.staging]", "[env.demo]", "env.demo: is built in and cannot be defined"),
    "unknown form key": (
        "path =",
        'pth = "/x"\npath =',
        "forms.signup.pth: there is no such key; did you mean 'path'?",
    ),
    "function without module": (
        "path =",
        'prepare = "cart"\npath =',
        "forms.signup.prepare: must name a function of yours as package.module:name",
    ),
    "submit without url": (
        "path =",
        "submit = {}\npath =",
        "forms.signup.submit.url: is missing: the path or URL that takes the submit",
    ),
    "submit elsewhere": (
        "path =",
        'submit = { url = "https://elsewhere.example/api" }\npath =',
        "forms.signup.submit.url: https://elsewhere.example is not among origins",
    ),
    "submit with a name in its url": ("path =", 'submit = { url = "/api/{run_id}" }\npath =', "work in fields only"),
    "submit by GET": (
        "path =",
        'submit = { url = "/api", method = "GET" }\npath =',
        "submit.method: 'GET' is not known; allowed: POST, PUT, PATCH",
    ),
    "misspelt name in a body": (
        "path =",
        'submit = { url = "/api", body = { user = { mail = "{identity.emial}" } } }\npath =',
        "submit.body: {identity.emial} at user.mail is no known name; did you mean 'identity.email'?",
    ),
    "date in a body": (
        "path =",
        'submit = { url = "/api", body = { day = 2026-12-10 } }\npath =',
        "submit.body: holds a date or time at day",
    ),
    "dotted key in a body": (
        "path =",
        'submit = { url = "/api", body = { "a.b" = "x" } }\npath =',
        "submit.body: has a key with a dot",
    ),
    "table in a form body": (
        "path =",
        'submit = { url = "/api", encoding = "form", body = { a = { b = "x" } } }\npath =',
        "submit.body.a: must be a single value",
    ),
    "token below a text": (
        "path =",
        'submit = { url = "/api", body = { a = "x" }, token_at = "a.token" }\npath =',
        "submit.token_at: has no place in the body: a.token leads through a value",
    ),
    "field beyond a list": (
        'fields = { email = "{identity.email}" }',
        'fields = { "a.3" = "x" }\nsubmit = { url = "/api", body = { a = ["x"] } }',
        "forms.signup.fields.a.3: has no place in the body: a.3 asks for 3 of a list of 1",
    ),
    "token twice": (
        "path =",
        'token_field = "t"\nsubmit = { url = "/api", token_at = "u" }\npath =',
        "token_field: and submit.token_at say the same thing",
    ),
    "token nowhere": (
        "path =",
        'submit = { url = "/api", token_at = [] }\npath =',
        "submit.token_at: must be a dotted path",
    ),
    "token field of several parts": (
        'type = "recaptcha_v2"',
        'type = "geetest_v3"\ntoken_field = "t"',
        "token_field: means nothing for geetest_v3",
    ),
    "one path for several parts": (
        'type = "recaptcha_v2"',
        'type = "geetest_v3"\nsubmit = { url = "/api", token_at = "t" }',
        "submit.token_at: is one path, and a geetest_v3 solution has several parts",
    ),
    "csrf from nowhere": (
        "path =",
        'submit = { url = "/api", csrf = { header = "X-CSRF" } }\npath =',
        "submit.csrf: says no place of the value",
    ),
    "csrf from two places": (
        "path =",
        'submit = { url = "/api", csrf = { header = "X-CSRF", cookie = "a", meta = "b" } }\npath =',
        "submit.csrf.meta: cookie and meta say the same thing",
    ),
    "csrf in a header of ours": (
        "path =",
        'submit = { url = "/api", csrf = { header = "Cookie", cookie = "a" } }\npath =',
        "submit.csrf.header: cannot be Cookie",
    ),
    "file in JSON": (
        'fields = { email = "{identity.email}" }',
        'fields = { avatar = { file = "cat.png" } }\nsubmit = { url = "/api" }',
        "forms.signup.fields: names a file, which only encoding = 'multipart' can carry",
    ),
    "file without a path": ('"{identity.email}"', '{ file = "" }', "or a file such as"),
    "a password in place of its variable": (
        '"{identity.email}"',
        '{ env = "hunter2-!" }',
        "fields.email: must be the name of a variable, not a value",
    ),
    "a field from two places": ('"{identity.email}"', '{ env = "A", file = "b" }', "a variable such as { env = "),
    "rate in words": ("path =", 'rate = "often"\npath =', "rate: must be a number of submits per s, min or h"),
    "rate of none": ("path =", 'rate = "0/min"\npath =', "rate: must be a number of submits per s, min or h"),
    "variant without headers": (
        "path =",
        'variants = [{ id = "ru" }]\npath =',
        "variants.0.headers: is missing: what this visitor's browser sends",
    ),
    "variant with our header": (
        "path =",
        'variants = [{ id = "x", headers = { User-Agent = "x" } }]\npath =',
        "variants.0.headers: cannot be User-Agent",
    ),
    "variant with a secret": (
        "path =",
        'variants = [{ id = "x", headers = { X-Api-Key = "x" } }]\npath =',
        "variants.0.headers: holds X-Api-Key: secrets never stand in the file",
    ),
    "variant with line breaks": (
        "path =",
        'variants = [{ id = "x", headers = { X-A = "a\\nb" } }]\npath =',
        "variants.0.headers: holds a value of X-A that cannot stand in a header",
    ),
    "variant twice": (
        "path =",
        'variants = [{ id = "x", headers = { A = "a" } }, { id = "x", headers = { A = "b" } }]\npath =',
        "variants: has two with the id 'x'",
    ),
    "confirm of nothing": ("path =", "confirm = {}\npath =", "confirm: needs a url and a rule on its answer, or"),
    "confirm without a rule": (
        "path =",
        'confirm = { url = "/mailbox" }\npath =',
        "confirm: says nothing of the answer; give at least one of status",
    ),
    "confirm with both": (
        "path =",
        'confirm = { function = "a:b", status = 200 }\npath =',
        "confirm: has a rule and a function",
    ),
    "confirm without a submit": (
        "path =",
        'verify = { via = "endpoint", url = "/v" }\nconfirm = "a:b"\npath =',
        "confirm: means nothing with verify.via = 'endpoint'",
    ),
    "confirm elsewhere": (
        "path =",
        'confirm = { url = "https://elsewhere.example/mail", status = 200 }\npath =',
        "confirm.url: https://elsewhere.example is not among origins",
    ),
    "cleanup of nothing": ("path =", 'cleanup = "a:b"\npath =', "cleanup: has nothing to remove"),
    "no path": ('path = "/signup"', "", "forms.signup.path: is missing: the page of the form"),
    "path without slash": ('"/signup"', '"signup"', "must be a path that starts with one slash"),
    "path to another host": ('"/signup"', '"//evil.example/"', "must be a path that starts with one slash"),
    "path with backslash": ('"/signup"', "'/\\evil'", "a backslash"),
    "path with fragment": ('"/signup"', '"/signup#form"', "a fragment"),
    "path with placeholder": ('"/signup"', '"/{run_id}"', "work in fields only"),
    "unknown type": ('"recaptcha_v2"', '"recaptcha"', "did you mean 'recaptcha_v"),
    "no success": ("success = { status = 303 }", "", "success: is missing: what the site answers"),
    "empty success": ("{ status = 303 }", "{}", "success: is empty; give at least one of status"),
    "empty rule within all": ("{ status = 303 }", "{ all = [{}] }", "success.all.0: is empty"),
    "success typo": (
        "{ status = 303 }",
        "{ stauts = 303 }",
        "success.stauts: there is no such key; did you mean 'status'?",
    ),
    "json typo": ("{ status = 303 }", "{ jsn = {} }", "did you mean 'json'?"),
    "status out of range": ("303", "20", "status.0: must be at least 100, not '20'"),
    "json of a list": (
        "{ status = 303 }",
        "{ json = { a = [1] } }",
        "must be a text, a number, true or false",
    ),
    "refused is success": (
        "success =",
        "refused = { status = 303 }\nsuccess =",
        "refused: is the same as success",
    ),
    "unknown placeholder": ("{identity.email}", "{identity.mail}", "did you mean 'identity.email'?"),
    "placeholder in capitals": ("{identity.email}", "{Identity.Email}", "did you mean 'identity.email'?"),
    "field as number": (
        '"{identity.email}"',
        "7",
        "fields.email: must be a text in quotes, a variable such as",
    ),
    "score for v2": (
        "path =",
        "min_score = 0.3\npath =",
        "means nothing for recaptcha_v2; it is for recaptcha_v3",
    ),
    "score too high": ("path =", "min_score = 2\npath =", "min_score: must be at most 0.9"),
    "siteverify without secret": (
        "path =",
        'verify = { via = "siteverify" }\npath =',
        "siteverify needs secret_env",
    ),
    "stand-in address": (
        "path =",
        'verify = { via = "siteverify", secret_env = "S", url_env = "U" }\npath =',
        "is for a stand-in only",
    ),
    "lookup without url": ("path =", 'verify = { via = "lookup" }\npath =', "needs the path or URL to ask"),
    "lookup elsewhere": (
        "path =",
        'verify = { via = "lookup", url = "https://x.example/y" }\npath =',
        "https://x.example is not among origins",
    ),
    "url of the form": (
        "path =",
        'verify = { url = "/x" }\npath =',
        "means nothing with via = 'form'; it is for 'lookup'",
    ),
    "unknown effect": ("path =", 'effects = ["accuont"]\npath =', "did you mean 'account'?"),
    "no effect and some": ("path =", 'effects = ["none", "mail"]\npath =', "says none and something else"),
    "project of nothing": (
        "[env.staging]",
        '[projects.a]\nenvs = ["qa"]\n[env.staging]',
        "'qa' is no environment",
    ),
    "project's account": (
        "[env.staging]",
        '[projects.a]\nenvs = ["staging"]\naccount = "m"\n[env.staging]',
        "projects.a.account: 'm' is no account",
    ),
    "release written out": (
        "account =",
        'release = "2.0"\naccount =',
        "env.staging.release: is not written out here: use release_env (the name of a variable) "
        "or release_file (the path of a file) or release_from (where the site says it)",
    ),
    "store written out": (
        "account =",
        'store = "redis://h"\naccount =',
        "env.staging.store: is not written out here: use store_env",
    ),
    "address of a provider written out": (
        "[env.staging]",
        'url = "http://127.0.0.1:1"\n[env.staging]',
        "accounts.main.url: is not written out here: use url_env (the name of a variable) or url_file",
    ),
    "headers written out": (
        "account =",
        'http = { headers = "A: b" }\naccount =',
        "env.staging.http.headers: is not written out here: use headers_env",
    ),
    "authority without _file": (
        "account =",
        'http = { ca = "ca.pem" }\naccount =',
        "env.staging.http.ca: is not written out here: use ca_file (the path of a file)",
    ),
    "author is no secret": ("path =", 'author = "me"\npath =', "forms.signup.author: there is no such key"),
    "address of a demo without origins": (
        'kind = "staging"\norigins = ["https://staging.shop.example"]',
        'kind = "demo"\nbase_url = "http://127.0.0.1:8000"',
        "env.staging.origins: is missing",
    ),
    "override of a misspelt form": (
        "[forms.signup]",
        '[env.staging.forms.singup]\ntags = ["a"]\n[forms.signup]',
        "env.staging.forms.singup: overrides a form that is not there; did you mean 'signup'? A new form needs path",
    ),
    "budget of the file": (
        "[env.staging]",
        "[run]\nbudget = 0\n[env.staging]",
        "run.budget: must be at least 1",
    ),
    "variable's name": ('"CAPTCHAAI_API_KEY"', '"MY-KEY"', "must be the name of a variable"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_in_a_sentence_with_its_place(name: str, small: str, load_text: Loader) -> None:
    right, wrong, sentence = MISTAKES[name]
    assert right in small
    with pytest.raises(ConfigError) as caught:
        load_text(small.replace(right, wrong, 1))
    assert sentence in caught.value.message
    for line in caught.value.message.splitlines():
        assert line.startswith("captcha-qa.toml:")
        assert not {"pydantic", "Input should", "For further information", "None"} & set(line.split())


# Fake secrets in places where they must not stand; none of them may come back in a message.
SECRETS: dict[str, tuple[str, str, str]] = {
    "key itself": (
        "api_key_env =",
        'api_key = "hunter2secret"\napi_key_env =',
        "secrets never stand in the file: use api_key_env (the name of a variable) or api_key_file",
    ),
    "key as variable name": (
        '"CAPTCHAAI_API_KEY"',
        '"hunter2secret0123456789abcdef01"',
        "looks like the secret itself",
    ),
    "password of http": (
        "account =",
        'http = { password = "hunter2secret" }\naccount =',
        "secrets never stand in the file",
    ),
    "basic auth": (
        "account =",
        'http = { basic_auth = "qa:hunter2secret" }\naccount =',
        "secrets never stand in the file: use basic_auth_env",
    ),
    "cookie": (
        "account =",
        'http = { cookie = "s=hunter2secret" }\naccount =',
        "secrets never stand in the file: use cookie_env",
    ),
    "store": (
        "account =",
        'store = "redis://u:hunter2secret@h"\naccount =',
        "secrets never stand in the file",
    ),
    "user info of an origin": (
        "https://staging.",
        "https://qa:hunter2secret@staging.",
        "holds a user name or password",
    ),
    "user info of a base": (
        "account =",
        'base_url = "https://qa:hunter2secret@staging.shop.example"\naccount =',
        "holds a user name or password",
    ),
    "secret of a form": (
        "path =",
        'verify = { via = "siteverify", secret = "hunter2secret" }\npath =',
        "secrets never stand in the file: use secret_env",
    ),
    "token in a kind": (
        'kind = "staging"',
        'kind = "https://u:hunter2secret@h"',
        "holds a user name or password",
    ),
    "syntax error beside a secret": ('"CAPTCHAAI_API_KEY"', '"hunter2secret', "is not valid TOML"),
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_in_the_file_is_refused_and_not_repeated(name: str, small: str, load_text: Loader) -> None:
    right, wrong, sentence = SECRETS[name]
    with pytest.raises(ConfigError) as caught:
        load_text(small.replace(right, wrong, 1))
    assert sentence in caught.value.message
    assert "hunter2" not in caught.value.message


def test_all_problems_are_listed_at_once_each_once(small: str, load_text: Loader) -> None:
    text = small.replace('"captchaai"', '"x"').replace('"/signup"', '"signup"').replace('"staging"', '"x"')
    text += '\n[env.other]\nextends = "staging"\nkind = "qa"\n'
    with pytest.raises(ConfigError) as caught:
        load_text(text)
    keys = [line.split(": ")[1] for line in caught.value.message.splitlines()]
    assert keys == ["accounts.main.provider", "env.staging.kind", "forms.signup.path"]


def test_a_problem_of_an_override_is_placed_where_it_is_written(small: str, load_text: Loader) -> None:
    text = small + '\n[env.staging.forms.signup]\npath = "x"\n'
    with pytest.raises(ConfigError, match=r"captcha-qa.toml:19: env.staging.forms.signup.path: must be"):
        load_text(text)


def test_a_problem_within_a_list_is_placed_in_the_environment_that_has_the_list(small: str, load_text: Loader) -> None:
    text = small + '\n[env.preview]\nextends = "staging"\norigins = ["https://*.example"]\n'
    with pytest.raises(ConfigError, match=r"captcha-qa.toml:20: env.preview.origins.0: is no usable origin"):
        load_text(text)


def test_a_key_missing_everywhere_is_asked_for_where_the_form_is_written(small: str, load_text: Loader) -> None:
    text = small.replace('path = "/signup"\n', "") + "\n[env.staging.forms.signup]\ntags = []\n"
    with pytest.raises(ConfigError, match=r"captcha-qa.toml:12: forms.signup.path: is missing"):
        load_text(text)


def test_forms_are_checked_also_without_an_environment(load_text: Loader) -> None:
    with pytest.raises(ConfigError, match=r"forms\.x\.path: must be a path"):
        load_text('[forms.x]\npath = "x"\ntype = "turnstile"\nsuccess = { status = 200 }\n')


def test_dropping_a_form_that_is_not_there_is_a_mistake(small: str, load_text: Loader) -> None:
    text = small + "\n[env.staging.forms.sign-up]\nenabled = false\n"
    with pytest.raises(ConfigError, match=r"env\.staging\.forms\.sign-up: drops a form that is not there; did you"):
        load_text(text)


def test_a_misspelt_override_is_told_once_and_only_as_that(small: str, load_text: Loader) -> None:
    text = small + '\n[env.second]\nextends = "staging"\n[env.second.forms.singup]\npath = "/de/signup"\n'
    text += '[env.third]\nextends = "second"\n'
    with pytest.raises(ConfigError) as caught:
        load_text(text)
    (line,) = caught.value.message.splitlines()
    assert line.startswith("captcha-qa.toml:20: env.second.forms.singup: overrides a form that is not there")


def test_an_override_may_name_a_form_of_the_environment_it_extends(small: str, load_text: Loader) -> None:
    own = 'path = "/sign-up"\ntype = "turnstile"\nsuccess = { status = 303 }\n'
    text = small + f"\n[env.staging.forms.sign-up]\n{own}"
    text += '[env.second]\nextends = "staging"\n[env.second.forms.sign-up]\ntags = ["a"]\n'
    assert load_text(text).environment("second").form("sign-up").tags == ("a",)


def test_a_new_form_without_a_type_and_unlike_the_others_is_asked_for_it(small: str, load_text: Loader) -> None:
    text = small + '\n[env.staging.forms.newsletter]\npath = "/news"\n'
    with pytest.raises(ConfigError, match=r"env\.staging\.forms\.newsletter\.type: is missing: one of"):
        load_text(text)


SITEVERIFY = 'verify = { via = "siteverify", secret_env = "S" }\npath ='


@pytest.mark.parametrize("provider", ["sandbox", "standin"])
def test_a_vendor_is_never_asked_about_tokens_it_cannot_know(provider: str, small: str, load_text: Loader) -> None:
    text = small.replace('"captchaai"', f'"{provider}"\nurl_env = "U"').replace("path =", SITEVERIFY)
    with pytest.raises(ConfigError, match=rf"verify\.url_env: is missing: no vendor knows tokens of {provider}"):
        load_text(text)
    assert load_text(text.replace('"S" }', '"S", url_env = "V" }')).environment("staging").forms


@pytest.mark.parametrize(
    ("chosen", "extra", "sentence"),
    [("local", "", "no vendor knows tokens of sandbox"), ("main", ', url_env = "V"', "is for a stand-in only")],
)
def test_the_account_of_a_run_is_held_to_the_same_rules(
    chosen: str, extra: str, sentence: str, small: str, load_text: Loader
) -> None:
    text = small + '\n[accounts.local]\nprovider = "sandbox"\nurl_env = "U"\n'
    text = text.replace("path =", SITEVERIFY.replace(" }", f"{extra} }}"))
    text = text.replace('account = "main"', 'account = "local"') if extra else text
    settings = load_text(text, options={"captcha_account": chosen})
    with pytest.raises(ConfigError, match=rf"{sentence}.*\(the account comes from --captcha-account\)"):
        settings.environment("staging")


def test_test_keys_in_production_are_an_error_and_elsewhere_none(small: str, load_text: Loader) -> None:
    keys = small.replace('provider = "captchaai"', 'provider = "testkeys"')
    keys = re.sub(r"api_key_env = .*\n", "", keys)
    assert load_text(keys).environment("staging").account.key_mode == "testkeys"
    with pytest.raises(ConfigError, match=r"env\.staging\.account: uses the vendors' official test keys"):
        load_text(keys.replace('kind = "staging"', 'kind = "production"'))


def test_a_test_sitekey_is_not_expected_in_production(small: str, load_text: Loader) -> None:
    text = small.replace("path =", 'sitekey = "6LeIxAcTAAAAAJcZVRqyHh71UMIEGNQ_MXjiZKhI"\npath =')
    assert load_text(text).environment("staging").forms
    with pytest.raises(ConfigError, match=r"sitekey: is an official test key, which lets everybody pass"):
        load_text(text.replace('kind = "staging"', 'kind = "production"'))


def test_environments_may_be_of_the_same_kind(small: str, load_text: Loader) -> None:
    settings = load_text(small + '\n[env.second]\nextends = "staging"\n')
    assert [settings.environment(name).kind for name in ("staging", "second")] == ["staging", "staging"]
