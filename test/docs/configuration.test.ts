// docs/configuration.md and examples/krane.toml say what the code does, checked both ways.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { type ConfigOutcome, parseConfig } from "../../src/config/parse.ts";
import { renderProblems } from "../../src/config/render.ts";
import type { Setting } from "../../src/config/setting.ts";
import { allSections, allSettings } from "../../src/config/settings.ts";

const docsUrl = new URL("../../docs/configuration.md", import.meta.url);
const exampleUrl = new URL("../../examples/krane.toml", import.meta.url);
const generated = /(<!-- settings: [^\n]*-->\n)([\s\S]*?)(<!-- \/settings -->)/;

function readDocs(): string {
  return readFileSync(docsUrl, "utf8");
}

function check(text: string, env: Record<string, string> = {}): ConfigOutcome {
  return parseConfig({ file: { path: "krane.toml", text }, env, flags: {}, randomId: () => "aB3dE6gH" });
}

test("the table of settings in docs/configuration.md is the one of the code", () => {
  if (process.env["UPDATE_GOLDEN"] === "1") {
    const filled = readDocs().replace(
      generated,
      (_, open, __, close) => `${open}\n${renderSettingsTable()}\n${close}`,
    );
    writeFileSync(docsUrl, filled);
  }
  assert.equal(generated.exec(readDocs())?.[2]?.trim(), renderSettingsTable().trim());
});

test("every variable, setting and section that the prose names exists", () => {
  const prose = readDocs()
    .replace(generated, "")
    .replaceAll(/```[\s\S]*?```/g, "");
  const variables = new Set(allSettings.map(({ env }) => env));
  for (const [name] of prose.matchAll(/UNKEY_[A-Z0-9_]*[A-Z0-9]/g)) {
    assert.ok(variables.has(name) || name === "UNKEY_CLUSTER_ID", name);
  }
  const flags = new Set(allSettings.map(({ flag }) => `--${flag}`));
  for (const [, name = ""] of prose.matchAll(/`(--[a-z-]+)`/g)) assert.ok(flags.has(name), name);
  for (const [, name = ""] of prose.matchAll(/`\[([a-z0-9.]+)\]`/g))
    assert.ok(allSections.includes(name), name);
  const paths = new Set(allSettings.map(({ path }) => path));
  for (const [, name = ""] of prose.matchAll(/`([a-z0-9]+\.[a-z0-9_.]+)`/g)) assert.ok(paths.has(name), name);
});

test("the TOML in docs/configuration.md is valid", () => {
  const blocks = [...readDocs().matchAll(/```toml\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
  assert.ok(blocks.length >= 2);
  for (const block of blocks) {
    const outcome = check(block, { CLUSTER_REGION: "us-east-1", DOMAIN: "example.com" });
    assert.equal(outcome.kind, "valid", outcome.kind === "invalid" ? renderProblems(outcome.problems) : "");
  }
});

test("the messages shown in docs/configuration.md are the ones that krane gives", () => {
  const outcome = check(
    'region = "us-east-1"\n\nrpc_prot = 8070\n\n[control]\nurl = "http://control.example.com"\n',
  );
  assert.equal(outcome.kind, "invalid");
  assert.ok(
    readDocs().includes(`\`\`\`text\n${renderProblems(outcome.problems)}\`\`\``),
    renderProblems(outcome.problems),
  );
});

test("examples/krane.toml is valid without any environment, and warns of nothing", () => {
  const outcome = check(readFileSync(exampleUrl, "utf8"));
  assert.equal(outcome.kind, "valid", outcome.kind === "invalid" ? renderProblems(outcome.problems) : "");
  assert.deepEqual(outcome.warnings, []);
  assert.equal(outcome.config.control.url, "http://127.0.0.1:7091");
  assert.equal(outcome.config.observability.metrics.prometheusPort, 9090);
});

function renderSettingsTable(): string {
  const rows = allSettings.map((setting) =>
    [
      `\`${setting.path}\``,
      setting.kind.label,
      setting.required ? "required" : (setting.fallback?.text ?? ""),
      `\`${setting.env}\``,
      describe(setting),
    ].map((cell) => cell.replaceAll("|", "\\|")),
  );
  const head = ["Setting", "Value", "Default", "Environment variable", "Meaning"];
  const lines = [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`);
  return `${lines.join("\n")}\n`;
}

function describe(setting: Setting<unknown>): string {
  const empty = setting.emptyIsUnset ? " Empty means not set." : "";
  return `${setting.about}${empty}`;
}
