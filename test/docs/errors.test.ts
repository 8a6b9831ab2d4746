// docs/errors.md against the code, in both directions: the page is made from the catalogue, every class takes its codes
// from it, every code in it is thrown, and what a remedy names is there. UPDATE_GOLDEN=1 rewrites the page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { exitCodes } from "../../src/cli/exit-codes.ts";
import { createProgram } from "../../src/cli/main.ts";
import { allSettings } from "../../src/config/settings.ts";
import { errorCatalogue } from "../../src/errors/error-catalogue.ts";
import {
  type ErrorClassEntry,
  type ErrorEntry,
  type RpcCodeEntry,
  rpcCodes,
} from "../../src/errors/error-entry.ts";
import { allServerSettings } from "../../src/server/config/server-settings.ts";
import { FakeIo } from "../support/fake-io.ts";
import { assertGoldenSection } from "../support/golden-section.ts";
import { projectFiles, readProjectFile } from "../support/project-files.ts";

const classes: readonly (readonly [string, ErrorClassEntry])[] = Object.entries(errorCatalogue);
const answers: readonly (readonly [string, RpcCodeEntry])[] = Object.entries(rpcCodes);
const entries = classes.flatMap(([, { codes }]) => Object.values(codes));

// The embedded API server stands on its own, and speaks in the codes of Kubernetes.
const sources = projectFiles(/^src\/.*\.ts$/)
  .filter((name) => !/\.test\.ts$|^src\/(gen|errors|dev\/kube-apiserver)\//.test(name))
  .map((name) => ({ name, text: readProjectFile(name) }));

function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(headings), `|${headings.map(() => "---|").join("")}`, ...rows.map(line)].join("\n");
}

function exitCell({ exit }: ErrorEntry): string {
  return exit === undefined ? "" : String(exitCodes[exit]);
}

function rpcCell({ rpc, rpcOfSecrets }: ErrorEntry): string {
  const secrets = rpcOfSecrets === undefined ? [] : [`SecretsService: \`${rpcOfSecrets}\``];
  return [...(rpc === undefined ? [] : [`\`${rpc}\``]), ...secrets].join("; ");
}

/** A column that would be empty is left out. */
function classSection(name: string, { title, about, codes }: ErrorClassEntry): string {
  const columns: readonly (readonly [string, (entry: ErrorEntry) => string])[] = [
    ["exit", exitCell],
    ["RPC", rpcCell],
    ["meaning", ({ means }) => means],
    ["what to do", ({ remedy }) => remedy],
  ];
  const filled = columns.filter(([, cell]) => Object.values(codes).some((entry) => cell(entry) !== ""));
  const rows = Object.entries(codes).map(([code, entry]) => [
    `\`${code}\``,
    ...filled.map(([, cell]) => cell(entry)),
  ]);
  const headings = ["code", ...filled.map(([heading]) => heading)];
  return `### ${name}\n\n${title}. ${about}\n\n${table(headings, rows)}\n`;
}

function exitTable(): string {
  const errorsOf = (exit: number) =>
    classes.flatMap(([name, { codes }]) => {
      const found = Object.entries(codes).filter(([, entry]) => exitCell(entry) === String(exit));
      const list = found.map(([code]) => `\`${code}\``).join(", ");
      return found.length === 0 ? [] : [`[${name}](#${name.toLowerCase()}): ${list}`];
    });
  const rows = Object.values(exitCodes).map((exit) => [String(exit), errorsOf(exit).join("; ")]);
  return table(
    ["exit", "errors"],
    rows.filter(([, errors]) => errors !== ""),
  );
}

test("docs/errors.md has the tables that the catalogue gives", () => {
  const rpcRows = answers.map(([code, { means, remedy }]) => [`\`${code}\``, means, remedy]);
  assertGoldenSection("docs/errors.md", "exit-codes", exitTable());
  assertGoldenSection("docs/errors.md", "rpc-codes", table(["code", "meaning", "what to do"], rpcRows));
  assertGoldenSection(
    "docs/errors.md",
    "errors",
    classes.map(([name, entry]) => classSection(name, entry)).join("\n"),
  );
});

test("every error class with a code takes it from the catalogue, and the catalogue has no other", () => {
  const coded = sources.flatMap(({ text }) =>
    [...text.matchAll(/class (\w+) extends CodedError<"(\w+)">/g)].map(([, name, entry]) => {
      assert.equal(name, entry);
      return entry;
    }),
  );
  assert.deepEqual(coded.sort(), classes.map(([name]) => name).sort());
  const others = sources
    .filter(({ text }) => /class \w+ extends Error \{(?:(?!\n\})[\s\S])*\bcode\b/.test(text))
    .map(({ name }) => `${name}: extend CodedError, and add the codes to src/errors`);
  assert.deepEqual(others, []);
});

test("every code in the catalogue is one that something throws", () => {
  const unused = classes.flatMap(([name, { codes }]) => {
    const texts = sources.filter(({ text }) => text.includes(name)).map(({ text }) => text);
    const isUsed = (code: string) => texts.some((text) => text.includes(`"${code}"`));
    return Object.keys(codes)
      .filter((code) => !isUsed(code))
      .map((code) => `${name} ${code}`);
  });
  assert.deepEqual(unused, []);
});

test("the RPC codes are those that krane's services answer with", () => {
  const servers = sources.filter(({ name }) => !/^src\/(cli|control-plane|vault)\//.test(name));
  const answered = servers.flatMap(({ text }) =>
    [...text.matchAll(/\bCode\.([A-Z]\w+)/g)].map(([, code = ""]) =>
      code.replaceAll(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase(),
    ),
  );
  // That one comes from the RPC library, for a call that has no route.
  const real = new Set([...answered, "unimplemented"]);
  assert.deepEqual(answers.map(([code]) => code).sort(), [...real].sort());
});

test("every meaning and every remedy is whole sentences that fit into a cell", () => {
  for (const { means, remedy } of [...entries, ...Object.values(rpcCodes)])
    for (const text of [means, remedy]) assert.match(text, /^\S[^|\n]*\.$/, text);
});

test("settings, commands and flags that a text names are there", () => {
  const texts = [
    ...classes.map(([, { about }]) => about),
    ...[...entries, ...answers.map(([, answer]) => answer)].flatMap(({ means, remedy }) => [means, remedy]),
  ].join("\n");
  const settings = new Set([...allSettings, ...allServerSettings].map(({ path }) => path));
  const named = [...texts.matchAll(/`([a-z_]+(?:\.[a-z_]+)+)`/g)].map(([, path = ""]) => path);
  assert.ok(named.length > 20);
  assert.deepEqual(
    named.filter((path) => !settings.has(path)),
    [],
  );
  const program = createProgram({}, new FakeIo(), () => undefined);
  for (const [, words = ""] of texts.matchAll(/`krane ([a-z ]+)`/g)) {
    let command = program;
    for (const word of words.split(" ")) {
      const next = command.commands.find((each) => each.name() === word);
      command = next ?? assert.fail(`there is no krane ${words}`);
    }
  }
  const flags = new Set(
    [program, ...program.commands].flatMap((command) => command.options.map(({ long }) => long)),
  );
  for (const [, flag = ""] of texts.matchAll(/`(--[a-z-]+)`/g))
    assert.ok(flag === "--help" || flags.has(flag), flag);
});
