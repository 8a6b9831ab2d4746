import assert from "node:assert/strict";
import { test } from "node:test";
import type { Leashed } from "../cluster/leash.ts";
import { eventually } from "../eventually.ts";
import { supervise } from "./supervised-part.ts";

/** Processes that end when they are told to, or when the test ends them. */
function scriptedProcesses() {
  const ends: ((how: string) => void)[] = [];
  const begin = (): Leashed => {
    let end = (_how: string): void => undefined;
    const ended = new Promise<string>((resolve) => {
      end = resolve;
    });
    ends.push(end);
    return {
      name: "part",
      logPath: "",
      ended,
      async release() {
        end("signal SIGTERM");
        await ended;
      },
    };
  };
  const started = (count: number) =>
    eventually(`started ${count} times`, () => assert.equal(ends.length, count));
  return { begin, ends, started };
}

const options = { restartAfterMs: 1, wellAfterMs: 600_000, restartsMax: 3 };

test("a component that ends is started again, but not for ever", async () => {
  const { begin, ends, started } = scriptedProcesses();
  supervise(begin, options);
  for (let count = 1; count <= options.restartsMax + 1; count += 1) {
    await started(count);
    ends.at(-1)?.("exit code 1");
  }
  const other = scriptedProcesses();
  supervise(other.begin, options);
  other.ends.at(-1)?.("exit code 1");
  await other.started(2);
  assert.equal(ends.length, options.restartsMax + 1);
});

test("ends of a component that had started well do not add up", async () => {
  const { begin, ends, started } = scriptedProcesses();
  supervise(begin, { ...options, wellAfterMs: 0 });
  for (let count = 1; count <= 3 * options.restartsMax; count += 1) {
    await started(count);
    ends.at(-1)?.("signal SIGKILL");
  }
});

test("a component that was stopped stays so until it is started, once", async () => {
  const { begin, ends, started } = scriptedProcesses();
  const part = supervise(begin, options);
  await part.stop();
  const other = scriptedProcesses();
  supervise(other.begin, options);
  other.ends.at(-1)?.("exit code 1");
  await other.started(2);
  assert.equal(ends.length, 1);
  part.start();
  part.start();
  assert.equal(ends.length, 2);
  ends.at(-1)?.("exit code 1");
  await started(3);
});
