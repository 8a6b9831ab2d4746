import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { buildKrane } from "../../support/krane-process.ts";

// A static import of one file of src/dev, anywhere, would make every start of the agent run all of them.
test("the bundle holds krane dev and runs none of it before it is asked for", async (t) => {
  const { program, remove } = await buildKrane();
  t.after(remove);
  const text = await readFile(program, "utf8");
  const bundled = [...text.matchAll(/^\/\/ (src\/dev\/\S+)$/gm)].map(([, file]) => file);
  const wrapped = new Set([...text.matchAll(/^ +"(src\/dev\/\S+?)"\(\) \{/gm)].map(([, file]) => file));
  assert.ok(bundled.length > 50, `${bundled.length} files`);
  const hasCode = bundled.filter((file) => !wrapped.has(file));
  assert.deepEqual(hasCode, []);
});
