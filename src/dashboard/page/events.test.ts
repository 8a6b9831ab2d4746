import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { EventSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { linesOf, mergedEvents } from "./events.ts";
import { eventText } from "./words.ts";

const event = (entry: number, name: string) => create(EventSchema, { entry: BigInt(entry), event: name });
const numbers = (events: readonly { readonly entry: bigint }[]) => events.map(({ entry }) => Number(entry));

test("reports in a row are one line, and every change has its own", () => {
  const events = [
    event(7, "reported"),
    event(6, "recovered"),
    event(5, "troubled"),
    event(4, "repaired"),
    event(3, "reported"),
    event(2, "set"),
    event(1, "set"),
  ];
  assert.deepEqual(
    linesOf(events).map((line) => numbers(line.events)),
    [[7, 6, 5], [4], [3], [2], [1]],
  );
});

test("a change that many reports pushed out of the list is in it anyway, in its place and once", () => {
  const reports = [event(9, "reported"), event(8, "set"), event(7, "reported")];
  const changes = [event(8, "set"), event(1, "set")];
  assert.deepEqual(numbers(mergedEvents(reports, changes)), [9, 8, 7, 1]);
});

test("an event of a newer server is shown by its name", () => {
  assert.deepEqual(eventText(event(1, "constructor")), { text: "constructor", tone: "calm" });
});
