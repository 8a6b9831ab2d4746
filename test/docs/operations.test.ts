// docs/operations against what is real: every alert has its page, every metric, setting, value, command and file that
// is named exists, and what is typed with secrets leaves them to their owner.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { createProgram } from "../../src/cli/main.ts";
import { allSettings } from "../../src/config/settings.ts";
import { allServerSettings } from "../../src/server/config/server-settings.ts";
import { FakeIo } from "../support/fake-io.ts";
import { assertKnownSeries, metricOf } from "../support/metric-queries.ts";
import { projectFiles, projectRoot, readProjectFile } from "../support/project-files.ts";

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string };
}

const pages = projectFiles(/^docs\/operations\/.*\.md$/).map((name) => ({
  name,
  text: readProjectFile(name),
}));
const alertsPage = readProjectFile("docs/operations/alerts.md");
const { groups } = parse(readProjectFile("deploy/chart/krane/files/alerts.yaml")) as {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);
test("every alert is on the page, with its severity, and the page names no other", () => {
  const sections = [...alertsPage.matchAll(/^### (\w+)\n(\w+)\. /gm)].map(([, name, severity]) => [
    name,
    severity,
  ]);
  assert.ok(sections.length >= 20);
  assert.deepEqual(
    sections,
    rules.map(({ alert, labels }) => [alert, labels.severity]),
  );
  const mentioned = [...alertsPage.matchAll(/\bKrane[A-Z]\w+/g)].map(([name]) => name);
  const known = new Set(rules.map(({ alert }) => alert));
  assert.deepEqual(
    mentioned.filter((name) => !known.has(name)),
    [],
  );
});

test("every alert says what to do", () => {
  for (const section of alertsPage.split(/^### /m).slice(1)) assert.match(section, /^Do: \S/m);
});

for (const { alert, expr } of rules)
  test(`${alert} asks for series that there are`, () => assertKnownSeries(expr));

test("metrics and settings on the pages are real", () => {
  const settings = new Set([...allSettings, ...allServerSettings].map(({ path }) => path));
  const sections = new Set([...settings].map((path) => path.split(".")[0]));
  const values = parse(readProjectFile("deploy/chart/krane/values.yaml"));
  for (const { name, text } of pages) {
    for (const [metric] of text.matchAll(/\bunkey_\w+/g)) metricOf(metric);
    for (const [, path = ""] of text.matchAll(/`([a-z_]+(?:\.[A-Za-z_0-9]+)+)(?:=[^`]*)?`/g)) {
      if (!sections.has(path.split(".")[0]) && !((path.split(".")[0] as string) in values)) continue;
      assert.ok(settings.has(path) || isValue(values, path), `${name}: ${path} is no setting and no value`);
    }
  }
});

function isValue(values: unknown, path: string): boolean {
  let value = values;
  for (const key of path.split(".")) {
    if (typeof value !== "object" || value === null || !(key in value)) return false;
    value = (value as Readonly<Record<string, unknown>>)[key];
  }
  return true;
}

test("every krane command on the pages is there", () => {
  const program = createProgram({}, new FakeIo(), () => undefined);
  const typed = pages.flatMap(({ text }) => {
    const blocks = [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = ""]) => block).join("\n");
    const inline = [...text.matchAll(/`(krane [^`]+)`/g)].map(([, code = ""]) => code).join("\n");
    const lines = [...`${blocks}\n${inline}`.matchAll(/(?:^krane|krane\.mjs) ([a-z].*)$/gm)];
    return lines.map(([, words = ""]) => words.split(/\s+/));
  });
  assert.ok(typed.length >= 10);
  for (const words of typed) {
    let command = program;
    for (const word of words) {
      const next = command.commands.find((each) => each.name() === word);
      if (next === undefined) break;
      command = next;
    }
    assert.ok(command !== program && command.commands.length === 0, `krane ${words.join(" ")}`);
    for (const flag of words.filter((word) => /^--[a-z]/.test(word)))
      assert.ok(
        command.options.some(({ long }) => long === flag),
        `krane ${words.join(" ")}: ${flag}`,
      );
  }
});

test("links and paths lead somewhere", () => {
  for (const { name, text } of pages) {
    const links = [...text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map(([, link = ""]) =>
      resolve(projectRoot, dirname(name), link),
    );
    const paths = [...text.matchAll(/\b(?:deploy|examples)\/[\w./-]*\w/g)].map(([path]) =>
      join(projectRoot, path),
    );
    for (const path of [...links, ...paths]) assert.ok(existsSync(path), `${name}: ${path}`);
  }
});

/** What is typed, one script for each block. */
function scriptsOf(text: string): readonly string[] {
  return [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, script = ""]) => script);
}

test("whatever is written is for its owner alone", () => {
  const writing = pages
    .flatMap(({ text }) => scriptsOf(text))
    .filter((script) => /[^|]>>? ?[\w~]/.test(script));
  assert.ok(writing.length >= 6);
  for (const script of writing) {
    const [before = ""] = script.split(/[^|]>>? ?[\w~]|^mkdir/m);
    assert.match(before, /^umask 077$/m, script);
  }
});

test("an agent's old token goes, and the tokens of other regions stay", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "krane-rotate-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = (name: string) => join(folder, "secrets", name);
  for (const part of ["agent", "server"]) mkdirSync(file(part), { recursive: true });
  writeFileSync(file("agent/control-token"), "aaaa\n");
  const others = ["eu.dev bbbb", "local.dev aaaa-of-another", "xlocal.dev aaaa"];
  writeFileSync(file("server/agent-tokens"), `${others[0]}\nlocal.dev aaaa\n${others.slice(1).join("\n")}\n`);
  const page = readProjectFile("docs/operations/rotate.md");
  const script = scriptsOf(page).find((one) => one.includes("agent-tokens")) ?? assert.fail("no such block");
  execFileSync("sh", ["-euc", `umask 022; put() { :; }\n${script}`], { cwd: folder });
  const renewed = readFileSync(file("agent/control-token"), "utf8").trim();
  assert.match(renewed, /^[0-9a-f]{64}$/);
  const lines = readFileSync(file("server/agent-tokens"), "utf8").trim().split("\n");
  assert.deepEqual(lines, [...others, `local.dev ${renewed}`]);
  assert.equal(statSync(file("server/agent-tokens")).mode & 0o077, 0);
});

test("an upgrade takes the defaults of the new chart", () => {
  const upgrades = pages.flatMap(({ text }) =>
    [...text.matchAll(/^helm upgrade .*$/gm)].map(([line]) => line),
  );
  assert.ok(upgrades.length >= 2);
  for (const line of upgrades) assert.doesNotMatch(line, /--reuse-values/);
});
