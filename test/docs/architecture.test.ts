import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { layers, rows } from "../../tools/layers.ts";
import { assertGoldenSection } from "../support/golden-section.ts";
import { projectFiles, projectRoot, readProjectFile } from "../support/project-files.ts";

test("the table of layers in the architecture page is the one that is enforced", () => {
  const lines = rows.flatMap((row, index) =>
    row.map((layer) => `| ${index + 1} | \`${layer.folder}\` | ${layer.holds} |`),
  );
  assertGoldenSection(
    "docs/architecture.md",
    "layers",
    ["| row | folder | what lives there |", "|---|---|---|", ...lines].join("\n"),
  );
});

test("every folder of src/ has its row in the table", () => {
  const folders = readdirSync(join(projectRoot, "src"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);
  const known = new Set(layers.map((layer) => layer.folder));
  assert.deepEqual(
    folders.filter((folder) => !known.has(folder)),
    [],
  );
});

test("every invariant that code or a test cites is on the architecture page", () => {
  const defined = new Set(
    [...readProjectFile("docs/architecture.md").matchAll(/\*\*(K\d+)\*\*/g)].map((m) => m[1]),
  );
  assert.equal(defined.size, 14);
  const unknown = projectFiles(/^(src|sim|test|bench)\/.*\.ts$/).flatMap((name) =>
    [...readProjectFile(name).matchAll(/\bK\d+\b/g)]
      .filter(([cited]) => !defined.has(cited))
      .map(([cited]) => `${name}: ${cited}`),
  );
  assert.deepEqual(unknown, []);
});
