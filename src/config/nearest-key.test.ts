import assert from "node:assert/strict";
import { test } from "node:test";
import { editDistance, nearestName } from "./nearest-key.ts";

const choices = [
  { name: "region" },
  { name: "rpc_port" },
  { name: "control.url", aliases: ["control-plane-url"] },
  { name: "vault.url" },
  { name: "vault.s3.region" },
  { name: "observability.metrics.prometheus_port" },
];

test("a typo, another spelling, an alias and a wrong section lead to the right setting", () => {
  const cases: [string, string | undefined][] = [
    ["regoin", "region"],
    ["Region", "region"],
    ["rpcPort", "rpc_port"],
    ["rpc-port", "rpc_port"],
    ["control_plane_url", "control.url"],
    ["contrl.url", "control.url"],
    ["prometheus_port", "observability.metrics.prometheus_port"],
    ["control.region", "region"],
    ["metrics.prometheusPort", "observability.metrics.prometheus_port"],
  ];
  for (const [wanted, expected] of cases) assert.equal(nearestName(wanted, choices), expected, wanted);
});

test("no suggestion when several settings match, or none", () => {
  for (const wanted of ["url", "colour", "", "x".repeat(1000)]) {
    assert.equal(nearestName(wanted, choices), undefined, wanted);
  }
});

test("the edit distance counts insertions, deletions, replacements and swaps", () => {
  const cases: [string, string, number][] = [
    ["", "", 0],
    ["abc", "abc", 0],
    ["", "abc", 3],
    ["abc", "", 3],
    ["abc", "abd", 1],
    ["abc", "acb", 1],
    ["abc", "ab", 1],
    ["kitten", "sitting", 3],
  ];
  for (const [a, b, distance] of cases) assert.equal(editDistance(a, b), distance, `${a} ${b}`);
});
