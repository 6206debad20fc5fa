// Draws the charts from the page's inert JSON and filters what is shown. Every text of a record is set as text, never as
// markup; expressions are walked by Vega's interpreter (`ast`), since the page forbids eval.
const data = JSON.parse(document.getElementById("data-json").textContent);
const form = document.getElementById("filters");
const said = document.getElementById("said");
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const KEYS = { e: "env", p: "project", t: "type", f: "form" };
const allRows = new Set();

// State stands in the fragment: #trends&env=staging&type=turnstile
function fromFragment() {
  const parts = location.hash.slice(1).split("&");
  const section = parts.find((part) => part && !part.includes("=")) ?? "";
  return [section, new URLSearchParams(parts.filter((part) => part.includes("=")).join("&"))];
}

function toFragment(section) {
  const state = new URLSearchParams();
  for (const select of all("select", form)) {
    if (select.value) state.set(select.name, select.selectedOptions[0].dataset.name ?? select.value);
  }
  const text = [section, state.toString()].filter(Boolean).join("&");
  history.replaceState(null, "", "#" + text);
}

function fillSelects() {
  for (const [key, name] of Object.entries(KEYS)) {
    const select = form.elements.namedItem(key);
    data.names[name].forEach((label, index) => {
      const option = document.createElement("option");
      option.value = String(index);
      option.textContent = label;
      option.dataset.name = label;
      select.append(option);
    });
    select.closest("label").hidden = data.names[name].length < 2;
  }
  document.getElementById("sieve").hidden = false;
}

let strange = []; // what the address asks for and this page does not have
function restore() {
  const [section, state] = fromFragment();
  strange = [];
  for (const select of all("select", form)) {
    const wanted = state.get(select.name) ?? "";
    const option = [...select.options].find((one) => (one.dataset.name ?? one.value) === wanted);
    select.value = option ? option.value : "";
    if (!option && wanted) strange.push(select.closest("label").firstChild.textContent.trim().toLowerCase());
  }
  return section;
}

const chosen = (key) => form.elements.namedItem(key).value;

// Rows of a pool: those of the chosen form, else those over all its forms.
function pointsOf(key) {
  const wanted = chosen("f") === "" ? -1 : Number(chosen("f"));
  const [pool, place] = [data.columns.indexOf("pool"), data.columns.indexOf("form")];
  return data.points
    .filter((row) => data.pools[row[pool]].key === key && row[place] === wanted)
    .map((row) => Object.fromEntries(data.columns.map((name, index) => [name, row[index]])))
    .map((row) => ({ ...row, release: data.releases[row.release] }));
}

const readers = {
  points: (plot) => pointsOf(plot.dataset.pool),
  bars: (plot) => data.bars.filter((bar) => bar.pool === plot.dataset.pool && bar.chart === plot.dataset.chart),
  moments: () => data.moments.filter((one) => Object.keys(KEYS).every((key) => matches(one, key))),
};

function matches(one, key) {
  const wanted = chosen(key);
  return wanted === "" || one[key] === undefined || one[key] === null || String(one[key]) === wanted;
}

function visible(element) {
  const tagged = element.dataset;
  if (!["e", "p", "t"].every((key) => matches(tagged, key))) return false;
  if (tagged.pool !== undefined && chosen("f") !== "") {
    return data.pools.find((pool) => pool.key === tagged.pool).forms.includes(Number(chosen("f")));
  }
  return matches(tagged, "f");
}

// A tip of our own: Vega's default writes a style sheet, which the page's policy refuses.
const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
document.body.append(tip);
const told = { seconds: (x) => seconds(Number.isFinite(x) ? x : null), percent: (x) => percent(Number.isFinite(x) ? x : null) };
function showTip(_handler, event, _item, value) {
  tip.hidden = value === null || value === undefined || value === "";
  if (tip.hidden) return;
  const list = document.createElement("dl");
  for (const [name, text] of Object.entries(value)) {
    const [term, said] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = name;
    said.textContent = (told[data.told[name]] ?? String)(text);
    list.append(term, said);
  }
  tip.replaceChildren(list);
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)) + "px";
}

// Many releases: points are there for their tips only, the band stands for the single intervals.
const DENSE = 40;
function fitted(chart, rows) {
  const spec = { ...data.specs[chart], data: { values: rows } };
  if (chart === "timeline") spec.height = 30 + 30 * new Set(rows.map((row) => row.kind)).size;
  if (spec.layer === undefined || rows.length <= DENSE) return spec;
  spec.layer = spec.layer.filter((one) => one.mark.type !== "rule").map((one) => {
    const mark = { circle: { opacity: 0, size: 60 }, line: { strokeWidth: 1.4 } }[one.mark.type] ?? {};
    return { ...one, mark: { ...one.mark, ...mark } };
  });
  return spec;
}

const sources = { timeline: "moments", "spread-wait": "bars", "spread-ours": "bars" };
const empties = { repeats: "No token was solved more than once.", rate: "No token was judged.", timeline: "Nothing matches the filters." };
const views = new Map();
let round = 0; // of filters: what was begun in an earlier one is drawn again
async function draw(plot) {
  const mine = round;
  const chart = plot.dataset.chart;
  const rows = readers[sources[chart] ?? "points"](plot);
  views.get(plot)?.finalize();
  views.delete(plot);
  const words = whyNone(chart, rows);
  const place = document.createElement(words ? "p" : "div");
  plot.replaceChildren(place);
  if (words) {
    place.className = "none";
    place.textContent = words;
  } else {
    const options = { mode: "vega-lite", ast: true, actions: false, renderer: "svg", defaultStyle: false, tooltip: showTip };
    views.set(plot, await window.vegaEmbed(place, fitted(chart, rows), options));
    place.setAttribute("aria-hidden", "true"); // the plot has its name, the numbers stand in the table
  }
  if (mine === round) plot.dataset.drawn = "done";
}

function whyNone(chart, rows) {
  const measured = (row) => data.needs[chart].some((name) => row[name] !== null && row[name] !== undefined);
  if (!rows.some(measured)) return empties[chart] ?? "Nothing was measured here.";
  if (chart === "repeats" && rows.every((row) => !row.repeated)) return empties.repeats;
  const few = sources[chart] === "bars" && rows.reduce((sum, row) => sum + row.count, 0) < data.leastSpread;
  return few ? "Too few attempts for a picture; the numbers stand below." : "";
}

// One chart at a time. Those near the window come first, the others when the browser has nothing else to do, so that a
// print has them all.
let queue = Promise.resolve();
function need(plot) {
  watcher.unobserve(plot);
  if (plot.dataset.drawn) return;
  plot.dataset.drawn = "begun";
  queue = queue.then(() => draw(plot)).catch((error) => {
    console.error(error);
    plot.textContent = "This chart could not be drawn; the numbers stand in the table.";
    plot.dataset.drawn = "done";
  });
}
const watcher = new IntersectionObserver(
  (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => need(entry.target)),
  { rootMargin: "600px" },
);
const soon = (then) => (window.requestIdleCallback ? requestIdleCallback(then, { timeout: 100 }) : setTimeout(then, 20));
async function drawRest(mine) {
  if (mine === round) {
    const next = all(".plot:not([data-drawn])").find((plot) => plot.offsetParent !== null);
    if (next) need(next);
    await queue;
    if (mine !== round) return;
    document.documentElement.dataset.charts = next ? "drawing" : "drawn";
    if (next) soon(() => drawRest(mine));
  }
}

// As `reporting.numbers` writes them.
function seconds(x) {
  if (x === null) return "–";
  if (x < 0) return "-" + seconds(-x);
  if (x > 0 && x < 0.0001) return "<0.1 ms";
  if (x > 0 && x < 0.9995) return Number((1000 * x).toPrecision(3)) + " ms";
  if (x < 999.5) return Number(x.toPrecision(3)) + " s";
  if (x >= 1e7) return x.toExponential(2).replace(/e([+-])(\d)$/, "e$10$2") + " s";
  return x.toLocaleString("en", { maximumFractionDigits: 0 }) + " s";
}
function percent(x) {
  if (x === null) return "–";
  const text = (100 * x).toFixed(Math.abs(x) < 0.01 || Math.abs(x - 1) < 0.01 ? 2 : 1);
  if (x > 0 && text === "0.00") return "<0.01 %";
  if (x < 1 && text === "100.00") return ">99.99 %";
  return Number(text) + " %";
}
const cells = {
  times: (row) => [
    row.release, row.runs, row.waits,
    ...[row.median, row.P90, row.P99, row.page, row.submit, row.verify].map(seconds),
  ],
  rates: (row) => [
    row.release, row.runs, row.judged, row.passed, percent(row.rate),
    row.low === null ? "–" : percent(row.low) + " to " + percent(row.high), row.keys, row.submits, percent(row.repeated),
  ],
};

function fillTable(table) {
  const key = table.dataset.pool;
  const found = pointsOf(key).reverse();
  const rows = (allRows.has(key) ? found : found.slice(0, data.mostRows)).map((row) => {
    const line = document.createElement("tr");
    cells[table.dataset.table](row).forEach((text, index) => {
      const cell = document.createElement(index === 0 ? "th" : "td");
      if (index === 0) cell.scope = "row";
      else cell.className = "num";
      cell.textContent = typeof text === "number" ? text.toLocaleString("en") : text;
      line.append(cell);
    });
    return line;
  });
  table.tBodies[0].replaceChildren(...rows);
}

function apply() {
  round += 1;
  let shown = 0;
  for (const element of all("main [data-e], main [data-f], main [data-pool]:not(.plot):not(table)")) {
    element.hidden = !visible(element);
    shown += element.tagName === "TR" && !element.hidden;
  }
  all("table[data-table]").forEach(fillTable);
  for (const section of all("main > section")) markEmpty(section);
  for (const plot of all(".plot")) {
    delete plot.dataset.drawn;
    watcher.unobserve(plot);
    watcher.observe(plot);
  }
  document.documentElement.dataset.charts = "drawing";
  const mine = round;
  soon(() => drawRest(mine));
  const filtered = Object.keys(KEYS).some((key) => chosen(key) !== "");
  const lost = strange.length ? ` This page does not have the ${strange.join(", ")} that its address names.` : "";
  said.textContent = ((filtered ? `Filtered: ${shown} rows match.` : "") + lost).trim();
  const theme = chosen("theme");
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

// A section whose every part is filtered away says so.
function markEmpty(section) {
  const parts = all("[data-e], [data-f], figure[data-pool]", section);
  let note = section.querySelector(".filtered");
  const gone = parts.length > 0 && parts.every((part) => part.hidden);
  if (gone && !note) {
    note = document.createElement("p");
    note.className = "empty filtered";
    note.textContent = "Nothing here matches the filters.";
    section.append(note);
  }
  if (note) note.hidden = !gone;
}

function go(section) {
  const target = document.getElementById(section);
  if (!target) return;
  target.scrollIntoView();
  target.focus({ preventScroll: true });
}

document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]');
  if (link) {
    event.preventDefault();
    toFragment(link.hash.slice(1));
    go(link.hash.slice(1));
  }
  const button = event.target.closest("button[data-all]");
  if (button) {
    allRows.add(button.dataset.all);
    all("button[data-all]").filter((one) => one.dataset.all === button.dataset.all).forEach((one) => one.closest("p").remove());
    all("table[data-table]").filter((table) => table.dataset.pool === button.dataset.all).forEach(fillTable);
  }
});
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("change", () => { strange = []; toFragment(fromFragment()[0]); apply(); });
form.addEventListener("reset", () => setTimeout(() => { strange = []; toFragment(fromFragment()[0]); apply(); }));
addEventListener("hashchange", () => { const section = restore(); apply(); go(section); });
addEventListener("beforeprint", () => {
  all("details").forEach((one) => { one.open = true; });
});

fillSelects();
all("button[data-all]").forEach((button) => { button.hidden = false; });
document.getElementById("sieve").open = innerWidth > 736;
const start = restore();
apply();
if (start) go(start);
