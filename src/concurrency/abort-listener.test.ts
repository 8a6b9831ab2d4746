import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { onAbort } from "./abort-listener.ts";

test("a listener is called once when the signal aborts, and not after it was removed", () => {
  const controller = new AbortController();
  const called: string[] = [];
  onAbort(controller.signal, () => called.push("kept"));
  onAbort(controller.signal, () => called.push("taken away"))();
  controller.abort();
  assert.deepEqual(called, ["kept"]);
  assert.equal(getEventListeners(controller.signal, "abort").length, 0);
});

test("many listeners on one signal cause no warning", async () => {
  const { signal } = new AbortController();
  const warnings: string[] = [];
  const onWarning = (warning: Error) => warnings.push(warning.name);
  process.on("warning", onWarning);
  for (let listener = 0; listener < 50; listener++) onAbort(signal, () => undefined);
  // Node warns in the next turn.
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", onWarning);
  assert.deepEqual(warnings, []);
});
