"use strict";
/* A shop on Express, as a team would write it: `node app.js`, configured by variables.

Sessions of express-session, a double-submit CSRF cookie of csrf-csrf, JSON and GraphQL behind it, and a form of plain
HTML behind a login. */

const crypto = require("node:crypto");
const cookieParser = require("cookie-parser");
const { doubleCsrf } = require("csrf-csrf");
const express = require("express");
const session = require("express-session");
const { buildSchema, GraphQLError } = require("graphql");
const { createHandler } = require("graphql-http/lib/use/express");

const { VENDOR_URL, TURNSTILE_SITEKEY, TURNSTILE_SECRET, QA_PASSWORD } = process.env;
const orders = [];
const accounts = [];
const invited = [];

const app = express();
app.disable("x-powered-by");
app.use(
  session({
    secret: crypto.randomBytes(32).toString("hex"),
    resave: false,
    saveUninitialized: true,
    cookie: { sameSite: "lax", httpOnly: true },
  }),
);
app.use(cookieParser());
app.use(express.json());
app.use(express.urlencoded({ extended: false }));

const { generateCsrfToken, doubleCsrfProtection } = doubleCsrf({
  getSecret: () => app.get("csrf secret"),
  getSessionIdentifier: (req) => req.session.id,
  cookieName: "XSRF-TOKEN",
  cookieOptions: { httpOnly: false, sameSite: "lax", secure: false },
  getCsrfTokenFromRequest: (req) => req.get("X-XSRF-TOKEN") ?? req.body?._csrf,
});
app.set("csrf secret", crypto.randomBytes(32).toString("hex"));

/** Asks Cloudflare about the token, and compares the action, as its documentation says. */
async function isHuman(token, action, remoteip) {
  if (typeof token !== "string" || token === "") return false;
  const body = new URLSearchParams({ secret: TURNSTILE_SECRET, response: token, remoteip });
  const reply = await fetch(`${VENDOR_URL}/turnstile/v0/siteverify`, { method: "POST", body });
  const outcome = await reply.json();
  return outcome.success === true && outcome.action === action;
}

const page = (title, body) => `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<script src="https://challenges.cloudflare.com/turnstile/v0/api.js" async defer></script></head>
<body><h1>${title}</h1>${body}</body></html>`;
const widget = (action) =>
  `<div class="cf-turnstile" data-sitekey="${TURNSTILE_SITEKEY}" data-action="${action}"></div>`;

// A single-page application: the page holds no form, its script posts JSON or GraphQL.

app.get("/shop", (req, res) => {
  generateCsrfToken(req, res);
  res.send(page("Shop", `<div id="root"></div>${widget("order")}<script src="/assets/index.js" type="module"></script>`));
});

app.post("/api/orders", doubleCsrfProtection, async (req, res) => {
  const { customer, items, captcha } = req.body;
  if (!(await isHuman(captcha?.token, "order", req.ip))) {
    return res.status(422).json({ ok: false, errors: [{ code: "captcha", message: "Are you human?" }] });
  }
  if (!customer?.email || !Array.isArray(items) || !items.every((item) => Number.isInteger(item.count))) {
    return res.status(400).json({ ok: false, errors: [{ code: "input" }] });
  }
  orders.push({ email: customer.email, count: items.reduce((sum, item) => sum + item.count, 0) });
  res.status(201).json({ ok: true, order: { number: orders.length } });
});

const schema = buildSchema(`
  input SignUpInput { email: String!  name: String!  newsletter: Boolean = false }
  type Account { id: ID!  email: String! }
  type Query { ping: Boolean }
  type Mutation { signUp(input: SignUpInput!, captchaToken: String): Account! }
`);
const rootValue = {
  ping: true,
  async signUp({ input, captchaToken }, { ip }) {
    if (!(await isHuman(captchaToken, "order", ip))) {
      throw new GraphQLError("Are you human?", { extensions: { code: "CAPTCHA" } });
    }
    accounts.push(input);
    return { id: accounts.length, email: input.email };
  },
};
const graphql = createHandler({ schema, rootValue, context: (req) => ({ ip: req.raw.ip }) });
app.all("/graphql", doubleCsrfProtection, graphql);

// Plain HTML behind a login.

app.get("/login", (req, res) => {
  const csrf = `<input type="hidden" name="_csrf" value="${generateCsrfToken(req, res)}">`;
  const fields = '<input name="user"><input name="password" type="password"><button>Log in</button>';
  res.send(page("Log in", `<form method="post" action="/login">${csrf}${fields}</form>`));
});

app.post("/login", doubleCsrfProtection, (req, res, next) => {
  if (req.body.user !== "qa" || req.body.password !== QA_PASSWORD) return res.redirect(303, "/login");
  req.session.regenerate((error) => {
    if (error) return next(error);
    req.session.user = req.body.user;
    res.redirect(303, "/invite");
  });
});

const signedIn = (req, res, next) => (req.session.user ? next() : res.redirect("/login"));

app.get("/invite", signedIn, (req, res) => {
  const csrf = `<input type="hidden" name="_csrf" value="${generateCsrfToken(req, res)}">`;
  const fields = `<input name="email" type="email">${widget("invite")}<button>Invite</button>`;
  res.send(page("Invite a friend", `<form method="post">${csrf}${fields}</form>`));
});

app.post("/invite", signedIn, doubleCsrfProtection, async (req, res) => {
  if (!(await isHuman(req.body["cf-turnstile-response"], "invite", req.ip))) {
    return res.status(422).send(page("Invite a friend", '<p class="captcha">Are you human?</p>'));
  }
  invited.push(`${req.body.email} by ${req.session.user}`);
  res.redirect(303, "/shop");
});

app.get("/audit", (req, res) => res.json({ orders, accounts, invited }));

const server = app.listen(0, "127.0.0.1", () => console.log(server.address().port));
