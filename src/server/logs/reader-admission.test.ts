import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectError } from "@connectrpc/connect";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { ReaderAdmission } from "./reader-admission.ts";

const limits = { readersMax: 4, perRegionMax: 3, perNameMax: 2 };

function hintOf(enter: () => unknown): number {
  try {
    enter();
  } catch (error) {
    return Number(ConnectError.from(error).metadata.get("retry-after"));
  }
  return assert.fail("it was let in");
}

test("readers are limited by name, by region and in all, and leave their places", () => {
  const places = new ReaderAdmission(limits, { clock: new FakeClock() });
  const leave = places.enter("a", "ann");
  places.enter("a", "ann");
  assert.throws(() => places.enter("b", "ann"), /ann is reading 2 logs, which is the limit; retry in \d+ s/);
  places.enter("a", "bob");
  assert.throws(() => places.enter("a", "eve"), /3 logs of region a are being read/);
  places.enter("b", "bob");
  assert.throws(() => places.enter("c", "eve"), /4 logs are being read on this server/);
  leave();
  leave();
  assert.equal(places.count, 3);
  places.enter("c", "eve");
});

test("a thousand who are refused come back in order, at most two in a second, for up to ten minutes", async () => {
  const clock = new FakeClock();
  const places = new ReaderAdmission({ ...limits, readersMax: 0 }, { clock });
  const refused = () => hintOf(() => places.enter("a", "ann"));
  const hints = Array.from({ length: 1_000 }, refused);
  assert.deepEqual(
    hints,
    hints.toSorted((one, other) => one - other),
  );
  for (let second = 0; second < 500; second++)
    assert.ok(hints.filter((hint) => hint === second).length <= 2, String(second));
  assert.equal(hints.at(-1), 505);
  await clock.advance(600_000);
  assert.equal(refused(), 6);
});
