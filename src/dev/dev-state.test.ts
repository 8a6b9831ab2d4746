import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ControllerStatusSchema, StreamStatus_State as State } from "../gen/krane/v1/agent_pb.ts";
import { streamsText } from "./dev-state.ts";

const controllers = (...states: readonly State[]) =>
  states.map((state, index) => create(ControllerStatusSchema, { name: `c${index}`, stream: { state } }));

test("streams that the control plane has open are shown as open before the agent is sure", () => {
  const connecting = controllers(State.CONNECTING, State.CONNECTING, State.CONNECTING);
  assert.equal(streamsText(connecting, 0), "connecting");
  assert.equal(streamsText(connecting, 2), "connecting");
  assert.equal(streamsText(connecting, 3), "open");
  assert.equal(streamsText(controllers(State.OPEN, State.CONNECTING), 2), "open");
});

test("streams that wait to reconnect are never shown as open", () => {
  assert.equal(streamsText(controllers(State.BACKING_OFF, State.BACKING_OFF), 2), "waiting to reconnect");
  assert.equal(streamsText([], 3), "not open");
});

test("streams in different states are named after what they bring", () => {
  const streams = [
    { name: "deployments", stream: { state: State.OPEN } },
    { name: "cilium", stream: { state: State.BACKING_OFF, lastErrorCode: "unavailable" } },
  ].map((each) => create(ControllerStatusSchema, each));
  assert.equal(streamsText(streams, 1), "deployments open, policies waiting to reconnect (unavailable)");
});
