import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  AgentViewSchema,
  KindWordsSchema,
  ObjectKind,
  ObjectView_Phase as Phase,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { causes } from "../../why/explanation.ts";
import { agentWord, ageText, causeTone, lagOf, phaseWord } from "./words.ts";

test("an age is told in one or two units", () => {
  const ages = [
    0, 999, 1_000, 59_999, 60_000, 125_000, 600_000, 3_600_000, 5_400_000, 90_000_000, 864_000_000,
  ];
  assert.deepEqual(
    ages.map((ms) => ageText(0, ms)),
    ["now", "now", "1s", "59s", "1m", "2m 5s", "10m", "1h", "1h 30m", "1d 1h", "10d"],
  );
  assert.equal(ageText(10, 0), "now", "clocks may differ");
});

test("only what is up to date is good", () => {
  assert.deepEqual(
    causes.filter((cause) => causeTone(cause) === "good"),
    ["changed-by-cluster", "all-well"],
  );
  assert.equal(causeTone("of a newer server"), "bad");
  assert.equal(causeTone("constructor"), "bad");
  assert.equal(phaseWord(99 as Phase).tone, "bad");
  assert.equal(phaseWord(Phase.READY).tone, "good");
});

test("an agent is good only while it is not silent", () => {
  const agent = (heartbeatAtMs: bigint) => create(AgentViewSchema, { heartbeatAtMs });
  assert.deepEqual(agentWord(agent(0n), 1), { text: "No agent has connected", tone: "bad" });
  assert.deepEqual(agentWord(agent(1n), 20_001), { text: "Heard 20s ago", tone: "good" });
  assert.deepEqual(agentWord(agent(1n), 46_001), { text: "Last heard 46s ago", tone: "bad" });
});

test("the lag is what the controllers of all kinds have not settled", () => {
  const kinds = [
    create(KindWordsSchema, { kind: ObjectKind.DEPLOYMENT, controller: "deployments" }),
    create(KindWordsSchema, { kind: ObjectKind.POLICY, controller: "cilium" }),
  ];
  const agent = create(AgentViewSchema, {
    newestVersions: [
      { kind: ObjectKind.DEPLOYMENT, version: 9n },
      { kind: ObjectKind.POLICY, version: 4n },
    ],
    state: {
      controllers: [
        { name: "deployments", stream: { cursor: 5n, settledUpTo: 7n } },
        { name: "cilium", stream: { cursor: 4n } },
      ],
    },
  });
  assert.equal(lagOf(agent, kinds), 2);
});
