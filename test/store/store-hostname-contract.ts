// What every store does for hostnames: a route gets one only if its workspace may use it and no other route of the region has
// it, and grants do not change under a route that has one.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { ApplyRoute_Expose as Expose } from "../../src/gen/ctrl/v1/route_pb.ts";
import { AppSpecSchema } from "../../src/gen/krane/admin/v1/app_pb.ts";
import { noGateway } from "../../src/kinds/route/report.ts";
import { withSpec } from "../../src/server/apps/releases.ts";
import { createSpec } from "../../src/server/kind-messages.ts";
import type { Store } from "../../src/server/store.ts";
import { type Holds, hasCode } from "./store-fixtures.ts";

const atMs = 1_700_000_000_000;
const author = { by: "ann", atMs };

const grant = ({ hostnames }: Store, name: string, workspaceId: string) =>
  hostnames.grant({ name, workspaceId, ...author });

/** A route in a namespace of its own. */
const route = (id: string, workspaceId: string, ...hostnames: string[]) =>
  createSpec("route", {
    ...{ routeId: id, k8sName: "web", k8sNamespace: id, workspaceId, hostnames },
    expose: Expose.GATEWAY,
  });
const put = (store: Store, region: string, ...args: Parameters<typeof route>) =>
  store.put(region, "route", route(...args), author);

// The stores of a test file share their grants, so each test has a domain of its own.
const domain = () => `${randomUUID()}.example`;

export function defineHostnameContract(holds: Holds): void {
  grants(holds);
  routes(holds);
  changes(holds);
}

function grants(holds: Holds): void {
  holds("a grant is kept, and names are listed in order", async ({ store, other }) => {
    const zone = domain();
    const first = await grant(store, `*.${zone}`, "ws_a");
    assert.deepEqual(first, { name: `*.${zone}`, workspaceId: "ws_a", ...author });
    await grant(other, `shop.${zone}`, "ws_b");
    const again = await other.hostnames.grant({ ...first, by: "bob", atMs: atMs + 1 });
    assert.deepEqual(again, first, "the earlier one");
    await assert.rejects(grant(other, `*.${zone}`, "ws_b"), hasCode("hostname_taken"));
    const names = async (...args: Parameters<Store["hostnames"]["list"]>) =>
      (await other.hostnames.list(...args)).map(({ name }) => name).filter((name) => name.endsWith(zone));
    assert.deepEqual(await names("", 1_000), [`*.${zone}`, `shop.${zone}`]);
    assert.deepEqual(await names(`*.${zone}`, 1_000), [`shop.${zone}`]);
    assert.deepEqual(await names("", 1_000, "ws_b"), [`shop.${zone}`]);
    assert.equal(await store.hostnames.revoke(`shop.${zone}`), true);
    assert.equal(await store.hostnames.revoke(`shop.${zone}`), false);
    assert.deepEqual(await names("", 1_000), [`*.${zone}`]);
  });
}

function routes(holds: Holds): void {
  holds("a route has only names that are granted to its workspace", async ({ store, other, region }) => {
    const zone = domain();
    const refused = hasCode("hostname_not_granted");
    await assert.rejects(put(store, region, "r1", "ws_a", `shop.${zone}`), refused);
    await grant(store, `*.${zone}`, "ws_a");
    await grant(store, `pay.${zone}`, "ws_b");
    await put(other, region, "r1", "ws_a", `shop.${zone}`, `deep.er.${zone}`);
    await assert.rejects(put(store, region, "r2", "ws_b", `www.${zone}`), refused);
    await assert.rejects(put(store, region, "r1", "ws_a", zone), refused, "not below the wildcard");
    await assert.rejects(put(store, region, "r1", "ws_a", `pay.${zone}`), refused, "a more specific grant");
    await put(store, region, "r2", "ws_b", `pay.${zone}`);
    assert.deepEqual((await other.row(region, "route", "r1"))?.spec.hostnames, [
      `shop.${zone}`,
      `deep.er.${zone}`,
    ]);
  });

  holds(
    "one route of a region has a name, and another one once it is free",
    async ({ store, other, region }) => {
      const zone = domain();
      const name = `shop.${zone}`;
      await grant(store, name, "ws_a");
      await put(store, region, "r1", "ws_a", name);
      await assert.rejects(put(other, region, "r2", "ws_a", name), hasCode("hostname_taken"));
      await put(other, region, "r1", "ws_a", name);
      await put(store, region, "r1", "ws_a");
      await put(other, region, "r2", "ws_a", name);
      await store.stop(region, "route", "r2", author);
      await put(other, region, "r1", "ws_a", name);
      const elsewhere = `${region}-2`;
      await store.registerRegion(elsewhere);
      await put(store, elsewhere, "r1", "ws_a", name);
    },
  );

  holds("a dry run is refused like the change, and takes nothing", async ({ store, other, region }) => {
    const name = `shop.${domain()}`;
    const decide = () => ({ spec: route("r1", "ws_a", name), desired: "running" }) as const;
    const dry = () => store.change(region, "route", "r1", decide, author, { dryRun: true });
    await assert.rejects(dry(), hasCode("hostname_not_granted"));
    await grant(store, name, "ws_a");
    await dry();
    await put(other, region, "r2", "ws_a", name);
  });

  holds(
    "the name of an app is checked with the app, which then is not written",
    async ({ store, region }) => {
      const name = `shop.${domain()}`;
      const template = { deploymentId: "app_web", k8sName: "web", k8sNamespace: "acme", workspaceId: "ws_a" };
      const spec = create(AppSpecSchema, { template, expose: Expose.GATEWAY, hostnames: [name] });
      const origin = { ...author, cause: "applied", secrets: new Uint8Array() };
      const apply = () =>
        store.changeApp(region, "app_web", ({ app }) => withSpec(app, spec, origin), author);
      await assert.rejects(apply(), hasCode("hostname_not_granted"));
      assert.equal((await store.app(region, "app_web")).app, undefined);
      assert.deepEqual(await store.rows(region, "deployment"), []);
      await grant(store, name, "ws_a");
      await apply();
      assert.deepEqual((await store.app(region, "app_web")).route?.row.spec.hostnames, [name]);
    },
  );
}

function changes(holds: Holds): void {
  holds(
    "no grant changes under a route that has a name, or that still has it in the cluster",
    async (open) => {
      const { store, other, region } = open;
      const zone = domain();
      const name = `shop.${zone}`;
      await grant(store, `*.${zone}`, "ws_a");
      await put(store, region, "r1", "ws_a", name);
      await assert.rejects(other.hostnames.revoke(`*.${zone}`), hasCode("in_use"));
      await assert.rejects(grant(other, name, "ws_b"), hasCode("hostname_taken"));
      await grant(other, name, "ws_a");
      await other.hostnames.revoke(`*.${zone}`);
      await assert.rejects(other.hostnames.revoke(name), hasCode("in_use"));

      const report = (exists: boolean, ...hostnames: string[]) =>
        store.report(
          region,
          "route",
          { name: "r1/web", id: "r1" },
          { exists, deploymentId: "", gateway: { ...noGateway, hostnames }, atMs },
        );
      await report(true, name);
      await put(store, region, "r1", "ws_a");
      await assert.rejects(other.hostnames.revoke(name), hasCode("in_use"), "its HTTPRoute still has it");
      await report(true);
      assert.equal(await other.hostnames.revoke(name), true);

      await grant(store, name, "ws_a");
      await put(store, region, "r1", "ws_a", name);
      await report(true, name);
      await store.stop(region, "route", "r1", author);
      await assert.rejects(other.hostnames.revoke(name), hasCode("in_use"), "it is not deleted yet");
      await report(false);
      assert.equal(await other.hostnames.revoke(name), true);
    },
  );

  holds("of a grant and a route at the same time, one is refused", async ({ store, other, region }) => {
    for (let round = 0; round < 10; round++) {
      const zone = domain();
      const name = `shop.${zone}`;
      await grant(store, `*.${zone}`, "ws_a");
      const id = `r${round}`;
      const both = await Promise.allSettled([
        put(store, region, id, "ws_a", name),
        round % 2 === 0 ? grant(other, name, "ws_b") : other.hostnames.revoke(`*.${zone}`),
      ]);
      const done = both.filter(({ status }) => status === "fulfilled").length;
      assert.equal(done, 1, `round ${round}`);
    }
  });
}
