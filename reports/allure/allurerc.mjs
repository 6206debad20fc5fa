// Configuration of Allure 3: `npx allure generate --config reports/allure/allurerc.mjs allure-results`.
// Allure 2 needs none: it reads categories.json where the tests put it, beside their results.
import { readFileSync } from "node:fs";

// The names of your environments in captcha-qa.toml. A test's history goes on from one to the next; its results in one
// report are told apart by them.
const ENVIRONMENTS = ["demo", "qa", "staging", "production"];

const ofEnvironment = (name) => ({
  matcher: ({ labels }) => labels.some((label) => label.name === "env" && label.value === name),
});

export default {
  name: "Captcha integration of our forms",
  output: "allure-report",
  historyPath: "allure-history.jsonl", // keep this file from run to run: it is the trend
  categories: JSON.parse(readFileSync(new URL("categories.json", import.meta.url), "utf8")),
  environments: Object.fromEntries(ENVIRONMENTS.map((name) => [name, ofEnvironment(name)])),
  plugins: {
    awesome: { options: { groupBy: ["feature", "story"] } },
  },
};
