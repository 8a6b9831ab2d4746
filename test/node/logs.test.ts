// `krane logs` of a program in gVisor: through the kubelet, the agent and the control plane.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "../support/eventually.ts";
import { type InstalledKrane, installedKrane } from "../support/node/installed-krane.ts";
import { applyAndWait, patience, podsOf, removeTenant, type Tenant } from "../support/node/tenants.ts";

const program = `for (let n = 1; n <= 100; n++) console.log("line", n);
import("/app.mjs");`;
const chatty: Tenant = {
  id: "chatty",
  namespace: "chatty",
  fields: { command: ["/nodejs/bin/node", "-e", program] },
};

let krane: InstalledKrane;

before(
  async () => {
    krane = await installedKrane();
    await krane.type(`helm upgrade krane deploy/chart/krane --namespace krane --reuse-values --set agent.logs.enabled=true
kubectl --namespace krane rollout status deployment/krane --timeout=180s`);
  },
  { timeout: 600_000 },
);

after(async () => {
  await removeTenant(krane, chatty);
  await krane.type(
    "helm upgrade krane deploy/chart/krane --namespace krane --reuse-values --set agent.logs.enabled=false",
  );
});

test("the lines of a pod are printed in order to a token with the role logs, and to no other", async () => {
  await applyAndWait(krane, chatty);
  await assert.rejects(krane.type("krane logs chatty"), /may not read logs/);
  await krane.type(`sed "s/ read-write / read-write+logs /" secrets/server/admin-tokens > secrets/server/admin-tokens.logs
mv secrets/server/admin-tokens.logs secrets/server/admin-tokens
kubectl --namespace krane create secret generic krane-server --from-file=secrets/server --dry-run=client --output yaml |
  kubectl apply -f -`);
  // The kubelet updates the files of a Secret within a minute or two.
  const printed = await eventually(
    "the token has the role",
    () => krane.type("krane logs --tail 50 chatty"),
    patience,
  );
  const expected = Array.from({ length: 50 }, (_, index) => `line ${index + 51}`);
  assert.deepEqual(
    printed.split("\n").filter((line) => line.startsWith("line ")),
    expected,
  );
  const [pod] = await podsOf(krane, chatty);
  // Each server has its own copy of the files, and the other one may get them later.
  const stamped = await eventually(
    "the token has the role at each server",
    () => krane.type(`krane logs --timestamps pod/${pod?.name}`),
    patience,
  );
  assert.match(stamped, /^\d{4}-\d\d-\d\dT.*Z line 1$/m);
});
