import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { bundle } from "../../../tools/bundle.ts";

type Inputs = Awaited<ReturnType<typeof bundle>>["inputs"];

/** What runs as soon as the program does: everything that static imports lead to. */
function startedWith(inputs: Inputs, entry: string): Set<string> {
  const seen = new Set<string>();
  const waiting = [entry];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    const imports = inputs[next]?.imports ?? [];
    waiting.push(...imports.filter(({ kind }) => kind !== "dynamic-import").map(({ path }) => path));
  }
  return seen;
}

// A static import of one file of src/dev, anywhere, would make every start of the agent run all of them.
test("the bundle holds krane dev and runs none of it before it is asked for", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "krane-bundle-"));
  t.after(() => rm(folder, { recursive: true }));
  const { inputs } = await bundle({ outfile: join(folder, "krane") });
  const isDev = (file: string) => file.startsWith("src/dev/");
  assert.ok(Object.keys(inputs).filter(isDev).length > 50);
  const started = startedWith(inputs, "src/cli/entry.ts");
  assert.ok(started.has("src/agent/run.ts"));
  assert.deepEqual([...started].filter(isDev), []);
});
