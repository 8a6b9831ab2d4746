import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ApplyCiliumNetworkPolicySchema } from "../gen/ctrl/v1/cilium_network_policy_pb.ts";
import { ApplyDeploymentSchema } from "../gen/ctrl/v1/deployment_pb.ts";
import { ApplySentinelSchema } from "../gen/ctrl/v1/sentinel_pb.ts";
import { parseApplyDeployment } from "../kinds/deployment/spec.ts";
import { parseApplyPolicy } from "../kinds/policy/spec.ts";
import { parseApplySentinel } from "../kinds/sentinel/spec.ts";
import { nextImage, nextName, sampleDeployments, samplePolicy, sampleSentinel } from "./scenario.ts";

test("the sample has a valid sentinel and a valid policy", () => {
  const sentinel = create(ApplySentinelSchema, sampleSentinel());
  assert.equal(parseApplySentinel(sentinel, { registries: [] }).kind, "valid");
  assert.equal(parseApplyPolicy(create(ApplyCiliumNetworkPolicySchema, samplePolicy()), {}).kind, "valid");
});

test("the sample has three valid deployments in two environments", () => {
  const parsed = sampleDeployments().map((deployment) =>
    parseApplyDeployment(create(ApplyDeploymentSchema, deployment), { registries: [] }),
  );
  assert.deepEqual(
    parsed.map(({ kind }) => kind),
    ["valid", "valid", "valid"],
  );
  assert.equal(new Set(sampleDeployments().map(({ environmentId }) => environmentId)).size, 2);
});

test("the next version has a name that was never given out", () => {
  assert.equal(nextName("web-1", new Set(["web-1"])), "web-2");
  assert.equal(nextName("web-1", new Set(["web-1", "web-2", "web-3"])), "web-4");
  assert.equal(nextName("web", new Set(["web"])), "web-2");
});

test("the next image has the next tag", () => {
  assert.equal(nextImage("docker.io/library/nginx:1.25"), "docker.io/library/nginx:1.26");
  assert.equal(nextImage("host:5000/nginx:v9"), "host:5000/nginx:v10");
  assert.equal(nextImage("host:5000/nginx"), "host:5000/nginx:2");
});
