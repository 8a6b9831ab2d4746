// A tenant's image with a shell: secrets by sh and curl, a health check by POST, and another signal than SIGTERM.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { shellAppImage } from "../support/node/images.ts";
import { type InstalledKrane, installedKrane } from "../support/node/installed-krane.ts";
import {
  applyAndWait,
  askFromPod,
  documentsOf,
  podsOf,
  removeTenant,
  startProbe,
  type Tenant,
} from "../support/node/tenants.ts";

let krane: InstalledKrane;
const shop: Tenant = {
  id: "shop",
  namespace: "shop",
  fields: {
    image: shellAppImage,
    shutdownSignal: "SIGINT",
    healthcheck: { method: "POST", path: "/", intervalSeconds: 1, failureThreshold: 60 },
  },
};
const value = 'it\'s "quoted" and $unexpanded ü';

before(
  async () => {
    krane = await installedKrane();
    await startProbe(krane);
    const [environment = ""] = documentsOf(shop).split("\n---\n");
    await krane.type(`krane apply -f - <<'END'\n${environment}\nEND`);
    await krane.type(`krane secrets set env_shop GREETING <<'END'\n${value}\nEND`);
    await applyAndWait(krane, shop);
  },
  { timeout: 600_000 },
);

after(() => removeTenant(krane, shop));

test("decrypt-env gives the process its secret, and the check by POST finds it ready", async () => {
  const [pod] = await podsOf(krane, shop);
  const env = JSON.parse(await askFromPod(krane, `http://${pod?.address}:8080/env`));
  assert.equal(env.GREETING, value);
  assert.equal(env.UNKEY_ENCRYPTED_ENV, undefined);
});

test("the process ends at the signal that its deployment names", async () => {
  const [pod] = await podsOf(krane, shop);
  const log = krane.cluster.kubectl(["-n", shop.namespace, "logs", "--follow", pod?.name ?? ""]);
  await removeTenant(krane, shop);
  assert.match(await log, /ends at SIGINT/);
});
