import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeIo } from "../../../test/support/fake-io.ts";
import { main } from "../main.ts";
import { offeredWords } from "./live-words.ts";

const contexts = ["production", "preview"]
  .map((name) => `[contexts.${name}]\nserver = "http://127.0.0.1:1"\ntoken = "nobody-asks-for-it"\n`)
  .join("");

async function words(...typed: readonly string[]) {
  const io = new FakeIo({ "config.toml": `current = "preview"\n${contexts}` });
  const code = await main(["complete-words", "--", ...typed], { KRANE_CONFIG: "config.toml" }, io);
  return { code, stdout: io.stdout.text, stderr: io.stderr.text };
}

test("only words that a shell does not expand are offered", () => {
  const hostile = [
    "$(touch stolen)",
    "`id`",
    "two words",
    "-flag",
    "a;b",
    "a\nb",
    "\u001b[2J",
    "~root",
    "*",
    "",
  ];
  const found = [...hostile, "web", "demo/web", "web", "d_web-1.x"];
  assert.deepEqual(offeredWords(found, ""), ["d_web-1.x", "demo/web", "web"]);
  assert.deepEqual(offeredWords(["web", "worker"], "we"), ["web"]);
});

test("contexts are offered where one is to be named", async () => {
  const all = { code: 0, stdout: "preview\nproduction\n", stderr: "" };
  assert.deepEqual(await words("context", "use", ""), all);
  assert.deepEqual(await words("get", "apps", "--context", ""), all);
  // As bash splits it.
  assert.deepEqual(await words("get", "apps", "--context", "="), all);
  assert.deepEqual(await words("get", "--context", "=", "pro"), { ...all, stdout: "production\n" });
});

test("where nothing is known, or nothing answers, nothing is printed", async () => {
  const nothing = { code: 0, stdout: "", stderr: "" };
  for (const typed of [
    ["get", "apps", ""],
    ["get", "app", "web", ""],
    ["get", "app", "--region", ""],
    ["get", "app", "--context", "nowhere", ""],
    ["render", ""],
    ["agent", "--region", ""],
    [""],
    [],
  ])
    assert.deepEqual(await words(...typed), nothing, typed.join(" "));
});
