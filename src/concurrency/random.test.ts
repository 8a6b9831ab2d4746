import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createSeededRandom, uniform } from "./random.ts";

test("the same seed gives the same sequence, another seed another one", () => {
  const draw = (seed: number) => {
    const random = createSeededRandom(seed);
    return Array.from({ length: 20 }, () => random.next());
  };
  assert.deepEqual(draw(7), draw(7));
  assert.notDeepEqual(draw(7), draw(8));
});

test("every number of every seed is in [0, 1), and uniform stays between its bounds", () => {
  fc.assert(
    fc.property(
      fc.integer(),
      fc.integer({ min: 0, max: 1e6 }),
      fc.integer({ min: 0, max: 1e6 }),
      (seed, min, width) => {
        const random = createSeededRandom(seed);
        for (let draw = 0; draw < 20; draw++) {
          const number = random.next();
          assert.ok(number >= 0 && number < 1);
          const between = uniform(random, min, min + width);
          assert.ok(between >= min && between <= min + width);
        }
      },
    ),
  );
});
