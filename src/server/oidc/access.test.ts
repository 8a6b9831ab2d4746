import assert from "node:assert/strict";
import { test } from "node:test";
import { accessOf, includesRegion, parseGroupRole } from "./access.ts";

const roles = [
  "sre read-write *",
  "dev read-only eu.aws us.aws",
  "dev-eu read-write eu.aws",
  "oncall logs eu.aws",
  "lead read-write+logs us.aws",
].map((line) => parseGroupRole(line) ?? assert.fail(line));
const none = new Set();

test("a role is a group, a role and regions; anything else is none", () => {
  for (const line of [
    "",
    "sre",
    "sre read-write",
    "sre admin *",
    "sre read-write * eu.aws",
    "sre read-write eu*",
    "two words read-only *",
    "sre read-only eu,us",
  ])
    assert.equal(parseGroupRole(line), undefined, line);
});

test("somebody may do what any of their groups may, there and nowhere else", () => {
  assert.equal(accessOf([], roles), undefined);
  assert.equal(accessOf(["SRE", "sre2", "s"], roles), undefined);
  assert.deepEqual(accessOf(["sre"], roles), { reads: "all", writes: "all", logs: none });
  const both = new Set(["eu.aws", "us.aws"]);
  assert.deepEqual(accessOf(["dev"], roles), { reads: both, writes: none, logs: none });
  assert.deepEqual(accessOf(["dev", "dev-eu", "other"], roles), {
    reads: both,
    writes: new Set(["eu.aws"]),
    logs: none,
  });
  assert.deepEqual(accessOf(["dev", "sre"], roles), { reads: "all", writes: "all", logs: none });
  assert.deepEqual(accessOf(["oncall", "lead"], roles), {
    reads: both,
    writes: new Set(["us.aws"]),
    logs: both,
  });
});

test("a region is in a set by its whole name", () => {
  assert.equal(includesRegion("all", "eu.aws"), true);
  assert.equal(includesRegion(new Set(["eu.aws"]), "eu.aws"), true);
  for (const name of ["", "eu", "eu.aws2"]) assert.equal(includesRegion(new Set(["eu.aws"]), name), false);
});
