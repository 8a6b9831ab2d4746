import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { runInWorkers } from "../../sim/workers.ts";

const program = fileURLToPath(new URL("squaring-worker.ts", import.meta.url));

test("every task is run once, and their processes end", async () => {
  const squares: number[] = [];
  const tasks = [1, 2, 3, 4, 5].map((number) => ({ number }));
  await runInWorkers(program, 2, tasks, ({ square }: { square: number }) => squares.push(square) > 0);
  assert.deepEqual(
    squares.sort((a, b) => a - b),
    [1, 4, 9, 16, 25],
  );
});

test("no task is begun after an outcome that ends the run", async () => {
  let outcomes = 0;
  const endless = (function* () {
    for (let number = 1; ; number++) yield { number };
  })();
  await runInWorkers(program, 1, endless, () => ++outcomes < 3);
  assert.equal(outcomes, 3);
});

test("a worker that fails fails the run", async () => {
  await assert.rejects(
    runInWorkers(program, 1, [{ number: -1 }], () => true),
    /a worker ended with code/,
  );
});
