import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createRecordedLog } from "../../test/support/recorded-log.ts";
import { ControllerStatusSchema, StreamStatus_State as State } from "../gen/krane/v1/agent_pb.ts";
import { otherVersionWarning, PeerVersion } from "./peer-version.ts";

test("a control plane of another version is named in one line of the log, until a stream opens", async () => {
  const clock = new FakeClock();
  const { log, lines } = createRecordedLog();
  let stream: { state: State; lastErrorCode: string } = {
    state: State.BACKING_OFF,
    lastErrorCode: "unimplemented",
  };
  const controllerStatuses = () =>
    ["deployments", "sentinels"].map((name) => create(ControllerStatusSchema, { name, stream }));
  const version = new PeerVersion({ view: { controllerStatuses }, clock, log });
  let isKnown = false;
  const known = version.whenKnown(new AbortController().signal).then(() => {
    isKnown = true;
  });
  await clock.advance(600_000);
  assert.equal(isKnown, false);
  assert.deepEqual(
    lines.map(({ level, msg }) => [level, msg]),
    [["error", otherVersionWarning]],
  );
  stream = { state: State.OPEN, lastErrorCode: "" };
  await clock.advance(1_000);
  await known;
  assert.equal(lines.length, 1);
});
