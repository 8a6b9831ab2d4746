// docs/server.md says what the code does. UPDATE_GOLDEN=1 rewrites its tables.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { renderStarted } from "../../src/cli/server-command.ts";
import { allServerSettings } from "../../src/server/config/server-settings.ts";
import { serverMetricCatalogue } from "../../src/server/server-metrics.ts";

const page = new URL("../../docs/server.md", import.meta.url);

function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(headings), line(headings.map(() => "---")), ...rows.map(line)].join("\n");
}

const tables: Readonly<Record<string, string>> = {
  settings: table(
    ["Setting", "Value", "Default", "Flag", "Environment variable", "Meaning"],
    allServerSettings.map(({ path, kind, fallback, flag, env, about }) => [
      `\`${path}\``,
      kind.label,
      fallback?.text ?? "",
      `\`--${flag}\``,
      `\`${env}\``,
      about,
    ]),
  ),
  metrics: table(
    ["Name", "Type", "Meaning"],
    Object.values(serverMetricCatalogue).map(({ name, type, help }) => [`\`${name}\``, type, help]),
  ),
};

test("docs/server.md shows what a server prints when it has started", () => {
  const url = "http://localhost:7091";
  const started = {
    url,
    metricsUrl: undefined,
    regions: ["local.dev"],
    tokensPath: "krane-data/agent-tokens",
    hasAdminApi: true,
    dashboardUrl: `${url}/dashboard/`,
    cliContextPath: "/home/me/krane-data/cli.toml",
  };
  const shown = renderStarted(started, { version: "0.1.0" });
  assert.ok(readFileSync(page, "utf8").includes(shown.trimEnd()), `the page lacks:\n${shown}`);
});

test("the tables in docs/server.md are those of the code", () => {
  const text = readFileSync(page, "utf8");
  const expected = Object.entries(tables).reduce((result, [name, content]) => {
    const section = new RegExp(`(<!-- ${name}: [^\\n]*-->\\n)[\\s\\S]*?(<!-- /${name} -->)`);
    assert.match(result, section);
    return result.replace(section, (_, open, close) => `${open}\n${content}\n\n${close}`);
  }, text);
  if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(page, expected);
  assert.equal(readFileSync(page, "utf8"), expected);
});

test("every flag and setting that the prose of docs/server.md names exists", () => {
  const text = readFileSync(page, "utf8");
  const flags = new Set(allServerSettings.map(({ flag }) => flag));
  for (const [, flag = ""] of text.matchAll(/--([a-z][a-z-]+)/g))
    assert.ok(flags.has(flag) || flag === "config", flag);
  const keys = new Set(allServerSettings.map(({ path }) => path.split(".").at(-1)));
  for (const key of [
    "agent_tokens_file",
    "admin_tokens_file",
    "stream_rate",
    "history_age",
    "history_entries",
  ])
    assert.ok(keys.has(key), key);
});
