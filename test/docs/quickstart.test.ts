// docs/quickstart.md where no node is: every block says whether the tests type it, is valid shell, and names values, files and
// commands that exist. test/node/quickstart.own-node.test.ts types it on a real node.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { createProgram } from "../../src/cli/main.ts";
import { FakeIo } from "../support/fake-io.ts";
import { projectRoot, readProjectFile } from "../support/project-files.ts";
import { quickstartBlocks } from "../support/quickstart-page.ts";

const blocks = quickstartBlocks();
const commands = blocks.filter(({ kind }) => kind !== "prints");

test("most blocks are typed by a test, and the others need a cloud or a tool that the tests have not", () => {
  const tools = ["kind", "k3d", "EKS", "GKE", "Docker", "registry", "gVisor"];
  const left = commands.filter(({ kind }) => kind === "not run");
  for (const { needs, text } of left) assert.ok(tools.includes(needs), `${needs}: ${text}`);
  assert.ok(commands.length - left.length >= 10);
});

test("every block is valid shell", () => {
  for (const { text } of commands) execFileSync("bash", ["-n"], { input: text });
});

test("values and files that the commands name exist", () => {
  const values = parse(readProjectFile("deploy/chart/krane/values.yaml"));
  const page = readProjectFile("docs/quickstart.md");
  const settings = [...page.matchAll(/--set ([\w.]+)=/g)].map(([, path = ""]) => path);
  assert.ok(settings.length >= 4);
  for (const path of settings) {
    const steps = path.split(".");
    let value = values;
    for (const step of steps) {
      assert.ok(typeof value === "object" && value !== null && step in value, path);
      value = value[step];
    }
  }
  for (const [path] of page.matchAll(/\b(?:deploy|examples)\/[\w./-]+\b/g))
    assert.ok(existsSync(join(projectRoot, path)), path);
});

test("every krane command on the page exists", () => {
  const program = createProgram({}, new FakeIo(), () => undefined);
  const names = new Set(program.commands.map((command) => command.name()));
  const used = commands.flatMap(({ text }) => [...text.matchAll(/^(?:.* -- )?krane (\w+)/gm)]);
  assert.ok(used.length >= 8);
  for (const [line, name = ""] of used) assert.ok(names.has(name), line);
});
