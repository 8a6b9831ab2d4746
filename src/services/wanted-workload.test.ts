import assert from "node:assert/strict";
import { test } from "node:test";
import type { DesiredDeployment } from "../kinds/deployment/desired-deployments.ts";
import { judgeWanted, type WantedOutcome } from "./wanted-workload.ts";

const identity = { key: "acme/web", deploymentId: "d_1", environmentId: "env_1", isSealed: false };
const own: DesiredDeployment = { kind: "wanted", deploymentId: "d_1", environmentId: "env_1" };

const cases: readonly (readonly [desired: DesiredDeployment | undefined, outcome: WantedOutcome])[] = [
  [own, { kind: "wanted", environmentId: "env_1" }],
  [
    { ...own, deploymentId: "d_2" },
    { kind: "denied", reason: "desired state names another deployment for this ReplicaSet" },
  ],
  [
    { ...own, environmentId: "env_2" },
    { kind: "denied", reason: "desired state names another environment for this ReplicaSet" },
  ],
  [{ kind: "deleting" }, { kind: "denied", reason: "the deployment is being deleted" }],
  [undefined, { kind: "undecided", reason: "desired state does not name this ReplicaSet yet" }],
  [
    { kind: "rejected" },
    { kind: "undecided", reason: "the control plane has sent no valid spec for this ReplicaSet" },
  ],
];

for (const [desired, outcome] of cases) {
  test(`with desired state ${JSON.stringify(desired)}, a pod is ${outcome.kind}`, () => {
    const find = (key: string) => (key === "acme/web" ? desired : assert.fail(`asked for ${key}`));
    assert.deepEqual(judgeWanted(identity, { find }), outcome);
  });
}
