// Compares the output of `krane why` with testdata/why, case by case: input.json holds the facts, answer.json the
// expected explanation. UPDATE_GOLDEN=1 rewrites answer.json; review the diff.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import {
  AgentViewSchema,
  AppViewSchema,
  ObjectRefSchema,
  ObjectViewSchema,
} from "../gen/krane/admin/v1/admin_pb.ts";
import { explain } from "./explain.ts";
import { explainApp } from "./explain-app.ts";
import { type Cause, causes, type Explanation } from "./explanation.ts";

interface GoldenInput {
  /** What the case is about. */
  readonly about: string;
  /** The expected cause, so that UPDATE_GOLDEN=1 cannot change it by mistake. */
  readonly cause: Cause;
  readonly nowMs: number;
  /** For an object that is missing from the control plane. */
  readonly asked?: JsonObject;
  readonly object?: JsonObject;
  /** Instead of an object. */
  readonly app?: JsonObject;
  readonly agent: JsonObject;
}

const folder = fileURLToPath(new URL("../../testdata/why/", import.meta.url));
const cases = readdirSync(folder).sort();

function readInput(name: string): GoldenInput {
  return JSON.parse(readFileSync(`${folder}${name}/input.json`, "utf8"));
}

function answerTo({ asked, object, app, agent, nowMs }: GoldenInput): Explanation {
  if (app !== undefined)
    return explainApp(fromJson(AppViewSchema, app), fromJson(AgentViewSchema, agent), nowMs);
  const { kind, id: name } = fromJson(ObjectRefSchema, asked ?? { id: "d_web" });
  const view = object && fromJson(ObjectViewSchema, object);
  return explain({ asked: { kind, name }, object: view, agent: fromJson(AgentViewSchema, agent) }, nowMs);
}

for (const name of cases)
  test(`explains ${name} as in testdata`, () => {
    const input = readInput(name);
    const answer = answerTo(input);
    assert.equal(answer.cause, input.cause);
    const file = `${folder}${name}/answer.json`;
    const text = `${JSON.stringify(answer, undefined, 2)}\n`;
    if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(file, text);
    assert.ok(existsSync(file), "no answer.json; UPDATE_GOLDEN=1 writes it");
    assert.equal(text, readFileSync(file, "utf8"));
  });

test("every cause has a golden file", () => {
  const answered = new Set(cases.map((name) => readInput(name).cause));
  assert.deepEqual(
    causes.filter((cause) => !answered.has(cause)),
    [],
  );
});

test("every summary is a sentence, and only up-to-date and deleted objects have no remedy", () => {
  for (const name of cases) {
    const { cause, summary, remedy } = answerTo(readInput(name));
    assert.match(summary, /^\S.*\.$/s, name);
    assert.equal(remedy === "", cause === "all-well" || cause === "deleted", name);
    assert.doesNotMatch(`${summary} ${remedy}`, /undefined|NaN|\[object/, name);
  }
});
