import assert from "node:assert/strict";
import { test } from "node:test";
import { deploymentSpec } from "../../../test/support/deployment-messages.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import type { Want } from "../../engine/desired-message.ts";
import { DesiredStore } from "../../engine/desired-store.ts";
import { desiredDeployments } from "./desired-deployments.ts";
import type { DeploymentSpec } from "./spec.ts";

const spec = deploymentSpec({ deploymentId: "d_1", environmentId: "env_1" });
const apply: Want<DeploymentSpec> = { kind: "apply", spec };
const invalid: Want<DeploymentSpec> = { kind: "invalid", problems: [] };
const wanted = { kind: "wanted", deploymentId: "d_1", environmentId: "env_1" };

function message(version: bigint, want: Want<DeploymentSpec>) {
  return { key: "acme/web", id: "d_1", version, want };
}

test("what is wanted is read from the store at each call", () => {
  const store = new DesiredStore<DeploymentSpec>(new FakeClock());
  const desired = desiredDeployments(store);
  const find = () => desired.find("acme/web");
  assert.equal(find(), undefined);
  store.receive(message(1n, invalid));
  assert.deepEqual(find(), { kind: "rejected" });
  store.receive(message(2n, apply));
  assert.deepEqual(find(), wanted);
  store.receive(message(3n, invalid));
  assert.deepEqual(find(), wanted, "the last good spec counts");
  store.receive(message(4n, { kind: "delete" }));
  assert.deepEqual(find(), { kind: "deleting" });
  store.remove("acme/web");
  assert.equal(find(), undefined);
  assert.equal(desired.find("thieves/web"), undefined);
});

test("an order counts like a message of the stream, also after a restart", () => {
  const store = new DesiredStore<DeploymentSpec>(new FakeClock());
  store.restore(message(0n, apply));
  assert.deepEqual(desiredDeployments(store).find("acme/web"), wanted);
});
