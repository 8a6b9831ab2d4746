// Parses every file in testdata/config/ and compares the whole output. The inputs
// have the word CANARY in each secret, and its base64 form in each master key; no
// output may contain either.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { type ConfigInput, type ConfigOutcome, parseConfig } from "./parse.ts";
import { renderConfig, renderProblems } from "./render.ts";

const root = fileURLToPath(new URL("../../testdata/config/", import.meta.url));
const canaries = ["CANARY", "Q0FOQVJZ"];
const update = process.env["UPDATE_GOLDEN"] === "1";

for (const kind of ["invalid", "valid"] as const) {
  for (const name of caseNames(kind)) {
    test(`testdata/config/${kind}/${name} gives exactly the expected text`, () => {
      const outcome = parseConfig(readCase(kind, name));
      assert.equal(outcome.kind, kind);
      const text = render(outcome);
      const golden = `${root}${kind}/${name}.expected.txt`;
      if (update) writeFileSync(golden, text);
      assert.equal(text, readFileSync(golden, "utf8"));
    });

    test(`testdata/config/${kind}/${name} shows no secret`, () => {
      const outcome = parseConfig(readCase(kind, name));
      const views = [
        render(outcome),
        JSON.stringify(outcome),
        inspect(outcome, { depth: Number.POSITIVE_INFINITY, showHidden: true }),
        inspect(outcome, { depth: Number.POSITIVE_INFINITY, showHidden: true, customInspect: false }),
        inspect(structuredClone(outcome), { depth: Number.POSITIVE_INFINITY }),
      ];
      for (const view of views) {
        for (const canary of canaries) assert.ok(!view.includes(canary), view);
      }
    });
  }
}

test("there are at least 20 broken configurations", () => {
  assert.ok(caseNames("invalid").length >= 20);
});

function caseNames(kind: string): string[] {
  const inputs = readdirSync(`${root}${kind}`).filter((file) => /\.(?:toml|env)$/.test(file));
  return [...new Set(inputs.map((file) => basename(file).replace(/\.\w+$/, "")))];
}

function readCase(kind: string, name: string): ConfigInput {
  const read = (extension: string) => {
    const path = `${root}${kind}/${name}.${extension}`;
    return existsSync(path) ? readFileSync(path, "utf8") : undefined;
  };
  const text = read("toml");
  return {
    ...(text === undefined ? {} : { file: { path: "krane.toml", text } }),
    env: pairs(read("env") ?? "", /^(\w+)=(.*)$/gm),
    flags: pairs(read("flags") ?? "", /^--([\w-]+)=(.*)$/gm),
    randomId: () => "aB3dE6gH",
  };
}

function pairs(text: string, pattern: RegExp): Record<string, string> {
  return Object.fromEntries([...text.matchAll(pattern)].map(([, name, value]) => [name, value]));
}

function render(outcome: ConfigOutcome): string {
  const body = outcome.kind === "valid" ? renderConfig(outcome) : renderProblems(outcome.problems);
  return outcome.warnings.length === 0 ? body : `${body}\nwarnings:\n${renderProblems(outcome.warnings)}`;
}
