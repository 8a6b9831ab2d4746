import assert from "node:assert/strict";
import { test } from "node:test";
import * as library from "../../src/index.ts";
import * as testing from "../../src/testing.ts";
import { assertGoldenSection } from "../support/golden-section.ts";
import { readProjectFile } from "../support/project-files.ts";

const page = readProjectFile("docs/library.md");

test("the example on the page is the one that is compiled and run", () => {
  const example = readProjectFile("examples/library/one-region.ts").trim();
  assertGoldenSection("docs/library.md", "example", `\`\`\`ts\n${example}\n\`\`\``);
});

test("every value that the library exports is on the page, and the constants have the values shown", () => {
  const missing = [...Object.keys(library), ...Object.keys(testing)].filter((name) => !page.includes(name));
  assert.deepEqual(missing, []);
  const shown = [...page.matchAll(/^\| `([A-Z]\w+)` \| `(\w+)` \|/gm)].map(([, name, value]) => [
    name,
    value,
  ]);
  const values: Readonly<Record<string, unknown>> = library;
  assert.equal(shown.length, 5);
  for (const [name = "", value] of shown) assert.equal(String(values[name]), value, name);
});

test("every name that the page imports is exported", () => {
  const imports = [...page.matchAll(/^import \{ ([^}]+) \} from "krane(\/testing)?";$/gm)];
  assert.ok(imports.length >= 4);
  for (const [, names = "", isTesting] of imports)
    for (const name of names.split(", ")) assert.ok(name in (isTesting ? testing : library), name);
});

test("every method of a controller is on the page", () => {
  const { DeploymentController, SentinelController, CiliumController } = library;
  const file = readProjectFile("src/engine/running-controller.ts");
  const shared = [...file.matchAll(/^ {2}(?:readonly )?(\w+)[(:]/gm)].map(([, name = ""]) => name);
  const ofInterfaces = shared.filter((name) => name in DeploymentController.prototype);
  assert.ok(ofInterfaces.length >= 8, ofInterfaces.join());
  for (const { prototype } of [DeploymentController, SentinelController, CiliumController])
    for (const name of [...Object.getOwnPropertyNames(prototype), ...ofInterfaces])
      if (name !== "constructor") assert.ok(page.includes(`\`${name}`), name);
});
