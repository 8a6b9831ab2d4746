// Server-side apply: who owns which field, and what becomes of a field that its owners leave out.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import {
  appsDeployment,
  appsDeployments,
  base64,
  container,
  lease,
  leases,
  replicaSet,
  replicaSets,
  secret,
  secrets,
  service,
  services,
} from "../fixtures.ts";
import { at, type Manifest, managedBy, ownedFields } from "../manifest.ts";

const alpha = { fieldManager: "alpha" };
const beta = { fieldManager: "beta" };
const gamma = { fieldManager: "gamma" };

function withContainers(...containers: readonly unknown[]): Manifest {
  return appsDeployment("a", {}, { containers });
}

export const applyOwnershipCases = [
  contractCase("apply: creates what is not there and says so", async (trial) => {
    const result = await trial.applyResult(secrets, secret("a", { key: "value" }));
    assert.equal(result.kind, "created");
    assert.deepEqual(await trial.read(secrets, "a"), result.object);
  }),
  contractCase("apply: changes what is there and says so", async (trial) => {
    await trial.apply(secrets, secret("a", { key: "one" }));
    const result = await trial.applyResult(secrets, secret("a", { key: "two" }));
    assert.equal(result.kind, "applied");
    assert.equal(at(result.object, "data.key"), base64("two"));
  }),
  contractCase("apply: the same again changes nothing, not even the version", async (trial) => {
    const first = await trial.apply(appsDeployments, appsDeployment("a", { paused: true }));
    const settled = await trial.read(appsDeployments, "a");
    const again = await trial.apply(appsDeployments, appsDeployment("a", { paused: true }));
    assert.equal(again.metadata?.uid, first.metadata?.uid);
    assert.equal(again.metadata?.generation, first.metadata?.generation);
    assert.deepEqual(ownedFields(again, "alpha"), ownedFields(settled, "alpha"));
  }),
  contractCase("apply: the same again leaves the resourceVersion of a Secret as it was", async (trial) => {
    const first = await trial.apply(secrets, secret("a", { key: "value" }));
    const again = await trial.apply(secrets, secret("a", { key: "value" }));
    assert.deepEqual(again, first);
  }),
  contractCase("apply: the same again brings no watch event", async (trial) => {
    const first = await trial.apply(secrets, secret("a", { key: "value" }));
    const watch = trial.watch(secrets, { resourceVersion: first.metadata?.resourceVersion ?? "" });
    await trial.apply(secrets, secret("a", { key: "value" }));
    await trial.apply(secrets, secret("b"));
    const event = await watch.next();
    assert.equal(event.type === "ADDED" && event.object.metadata?.name, "b");
  }),
  contractCase("apply: another manager's equal apply adds only its ownership", async (trial) => {
    const first = await trial.apply(secrets, secret("a", { key: "value" }));
    const second = await trial.apply(secrets, secret("a", { key: "value" }), beta);
    assert.deepEqual(at(second, "data"), at(first, "data"));
    assert.notEqual(second.metadata?.resourceVersion, first.metadata?.resourceVersion);
    assert.deepEqual(ownedFields(second, "beta"), ownedFields(second, "alpha"));
  }),
  contractCase("apply: the manager owns exactly what it sent", async (trial) => {
    const applied = await trial.apply(
      replicaSets,
      replicaSet(
        "a",
        {},
        { tolerations: undefined, containers: [container("app", { env: [{ name: "A", value: "1" }] })] },
      ),
    );
    const item = "spec.template.spec.containers[name=app]";
    assert.deepEqual(
      ownedFields(applied, "alpha"),
      [
        "metadata.labels.app",
        "spec.replicas",
        "spec.selector",
        "spec.template.metadata.labels.app",
        `${item}.`,
        `${item}.name`,
        `${item}.image`,
        `${item}.env[name=A].`,
        `${item}.env[name=A].name`,
        `${item}.env[name=A].value`,
      ].sort(),
    );
  }),
  contractCase(
    "apply: an entry in managedFields names manager, operation, version and time",
    async (trial) => {
      const applied = await trial.apply(replicaSets, replicaSet("a"));
      const [entry, ...more] = managedBy(applied, "alpha");
      assert.deepEqual(more, []);
      assert.equal(`${entry?.operation} ${entry?.apiVersion} ${entry?.fieldsType}`, "Apply apps/v1 FieldsV1");
      assert.match(entry?.time ?? "", /^\d{4}-.*Z$/);
      assert.equal(entry?.subresource, undefined);
    },
  ),
  contractCase("apply: a field that its only owner stops applying is removed", async (trial) => {
    await trial.apply(secrets, secret("a", { keep: "1", drop: "2" }));
    const applied = await trial.apply(secrets, secret("a", { keep: "1" }));
    assert.deepEqual(at(applied, "data"), { keep: base64("1") });
    assert.deepEqual(ownedFields(applied, "alpha"), ["data.keep"]);
  }),
  contractCase("apply: a field that another owner still applies stays", async (trial) => {
    await trial.apply(secrets, secret("a", { shared: "1", own: "2" }));
    await trial.apply(secrets, secret("a", { shared: "1" }), beta);
    const applied = await trial.apply(secrets, secret("a", { own: "2" }));
    assert.equal(at(applied, "data.shared"), base64("1"));
    assert.deepEqual(ownedFields(applied, "alpha"), ["data.own"]);
    assert.deepEqual(ownedFields(applied, "beta"), ["data.shared"]);
  }),
  contractCase("apply: a shared field goes when its last owner leaves it out", async (trial) => {
    await trial.apply(secrets, secret("a", { shared: "1", own: "2" }));
    await trial.apply(secrets, secret("a", { shared: "1" }), beta);
    await trial.apply(secrets, secret("a", { own: "2" }));
    const applied = await trial.apply(secrets, secret("a"), beta);
    assert.deepEqual(at(applied, "data"), { own: base64("2") });
  }),
  contractCase("apply: fields of others are left alone", async (trial) => {
    await trial.apply(secrets, secret("a", { theirs: "1" }), beta);
    const applied = await trial.apply(secrets, secret("a", { ours: "2" }));
    assert.deepEqual(at(applied, "data"), { ours: base64("2"), theirs: base64("1") });
  }),
  contractCase("apply: a manager that applies nothing gives up all it had", async (trial) => {
    await trial.apply(secrets, secret("a", { one: "1" }, { labels: { two: "2" } }));
    const applied = await trial.apply(secrets, { metadata: { name: "a" } });
    assert.equal(at(applied, "data"), undefined);
    assert.equal(applied.metadata?.labels, undefined);
    assert.deepEqual(managedBy(applied, "alpha"), []);
  }),
  contractCase("apply: an empty map is owned as such", async (trial) => {
    const applied = await trial.apply(secrets, { metadata: { name: "a" }, data: {} });
    assert.deepEqual(ownedFields(applied, "alpha"), ["data"]);
  }),
  contractCase("apply: a default that nobody sent belongs to nobody", async (trial) => {
    const applied = await trial.apply(secrets, secret("a", { key: "value" }));
    assert.equal(at(applied, "type"), "Opaque");
    assert.deepEqual(ownedFields(applied, "alpha"), ["data.key"]);
  }),
  contractCase(
    "apply: a defaulted field falls back to its default when it is no longer applied",
    async (trial) => {
      await trial.apply(replicaSets, replicaSet("a", { minReadySeconds: 5 }));
      const applied = await trial.apply(replicaSets, replicaSet("a", { replicas: undefined }));
      assert.equal(at(applied, "spec.minReadySeconds"), undefined);
      assert.equal(at(applied, "spec.replicas"), 1);
    },
  ),
  contractCase("apply: labels are owned one by one", async (trial) => {
    await trial.apply(secrets, secret("a", {}, { labels: { one: "1" } }));
    const applied = await trial.apply(secrets, secret("a", {}, { labels: { two: "2" } }), beta);
    assert.deepEqual(applied.metadata?.labels, { one: "1", two: "2" });
    assert.deepEqual(ownedFields(applied, "beta"), ["metadata.labels.two"]);
  }),
  contractCase("apply: containers are a map by name, each manager adds its own", async (trial) => {
    await trial.apply(appsDeployments, withContainers(container("app")));
    const sidecar = { spec: { template: { spec: { containers: [container("side")] } } } };
    const applied = await trial.apply(appsDeployments, { metadata: { name: "a" }, ...sidecar }, beta);
    const containers = at(applied, "spec.template.spec.containers") as readonly { readonly name: string }[];
    assert.deepEqual(
      containers.map((one) => one.name),
      ["app", "side"],
    );
  }),
  contractCase("apply: a container that its owner leaves out is removed, others stay", async (trial) => {
    await trial.apply(appsDeployments, withContainers(container("app"), container("side")));
    const applied = await trial.apply(appsDeployments, withContainers(container("side")));
    const containers = at(applied, "spec.template.spec.containers") as readonly { readonly name: string }[];
    assert.deepEqual(
      containers.map((one) => one.name),
      ["side"],
    );
  }),
  contractCase("apply: containers come in the order in which they are applied", async (trial) => {
    await trial.apply(appsDeployments, withContainers(container("x"), container("y")));
    const applied = await trial.apply(appsDeployments, withContainers(container("y"), container("x")));
    const containers = at(applied, "spec.template.spec.containers") as readonly { readonly name: string }[];
    assert.deepEqual(
      containers.map((one) => one.name),
      ["y", "x"],
    );
  }),
  contractCase("apply: env is a map by name; one left out is removed", async (trial) => {
    const env = (...names: readonly string[]) => names.map((name) => ({ name, value: name }));
    await trial.apply(appsDeployments, withContainers(container("app", { env: env("A", "B", "C") })));
    const applied = await trial.apply(
      appsDeployments,
      withContainers(container("app", { env: env("C", "A") })),
    );
    assert.deepEqual(at(applied, "spec.template.spec.containers.0.env"), env("C", "A"));
  }),
  contractCase(
    "apply: env turns from a value into a reference without a trace of the value",
    async (trial) => {
      const reference = {
        name: "A",
        valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } },
      };
      await trial.apply(
        appsDeployments,
        withContainers(container("app", { env: [{ name: "A", value: "1" }] })),
      );
      const applied = await trial.apply(
        appsDeployments,
        withContainers(container("app", { env: [reference] })),
      );
      assert.deepEqual(at(applied, "spec.template.spec.containers.0.env"), [reference]);
    },
  ),
  contractCase("apply: ports of a Service are a map by port and protocol", async (trial) => {
    const ports = (...numbers: readonly number[]) => numbers.map((port) => ({ name: `p${port}`, port }));
    await trial.apply(services, service("a", { ports: ports(80, 443) }));
    const applied = await trial.apply(services, service("a", { ports: ports(443, 8080) }));
    const numbers = (at(applied, "spec.ports") as readonly { readonly port: number }[]).map(
      ({ port }) => port,
    );
    assert.deepEqual(numbers, [443, 8080]);
    assert.ok(ownedFields(applied, "alpha").includes("spec.ports[port=443,protocol=TCP].name"));
  }),
  contractCase("apply: an atomic list is replaced as a whole", async (trial) => {
    await trial.apply(appsDeployments, withContainers(container("app", { args: ["a", "b", "c"] })));
    const applied = await trial.apply(appsDeployments, withContainers(container("app", { args: ["c"] })));
    assert.deepEqual(at(applied, "spec.template.spec.containers.0.args"), ["c"]);
  }),
  contractCase("apply: a selector is atomic, its labels are not owned one by one", async (trial) => {
    const applied = await trial.apply(services, service("a", { selector: { one: "1", two: "2" } }));
    const owned = ownedFields(applied, "alpha").filter((path) => path.startsWith("spec.selector"));
    assert.deepEqual(owned, ["spec.selector"]);
    const next = await trial.apply(services, service("a", { selector: { two: "2" } }));
    assert.deepEqual(at(next, "spec.selector"), { two: "2" });
  }),
  contractCase("apply: finalizers are a set, each manager brings its own", async (trial) => {
    const held = (finalizer: string) => secret("a", {}, { finalizers: [finalizer] });
    trial.after(() => trial.patch(secrets, "a", "merge", { metadata: { finalizers: null } }));
    await trial.apply(secrets, held("contract.example/one"));
    const both = await trial.apply(secrets, held("contract.example/two"), beta);
    assert.deepEqual(both.metadata?.finalizers, ["contract.example/one", "contract.example/two"]);
    assert.ok(ownedFields(both, "beta").includes('metadata.finalizers["contract.example/two"]'));
    const one = await trial.apply(secrets, secret("a"), beta);
    assert.deepEqual(one.metadata?.finalizers, ["contract.example/one"]);
  }),
  contractCase("apply: owner references are a map by uid", async (trial) => {
    const owner = await trial.create(secrets, secret("owner"));
    const uid = owner.metadata?.uid ?? "";
    const references = [{ apiVersion: "v1", kind: "Secret", name: "owner", uid }];
    const applied = await trial.apply(secrets, secret("a", {}, { ownerReferences: references }));
    assert.deepEqual(applied.metadata?.ownerReferences, references);
    assert.ok(ownedFields(applied, "alpha").includes(`metadata.ownerReferences[uid=${uid}]`));
    const without = await trial.apply(secrets, secret("a"));
    assert.equal(without.metadata?.ownerReferences, undefined);
  }),
  contractCase("apply: what an Update wrote is not removed by an apply that leaves it out", async (trial) => {
    await trial.create(secrets, secret("a", { theirs: "1" }), { fieldManager: "somebody" });
    const applied = await trial.apply(secrets, secret("a", { ours: "2" }));
    assert.deepEqual(at(applied, "data"), { ours: base64("2"), theirs: base64("1") });
  }),
  contractCase("apply: an Update takes a field away from its former owner", async (trial) => {
    await trial.apply(secrets, secret("a", { key: "one", other: "1" }));
    const query = { fieldManager: "editor" };
    const merged = await trial.patch(secrets, "a", "merge", { data: { key: base64("two") } }, { query });
    assert.deepEqual(ownedFields(merged, "alpha"), ["data.other"]);
    assert.deepEqual(ownedFields(merged, "editor", "Update"), ["data.key"]);
  }),
  contractCase("apply: a manager whose last field is taken away vanishes from the list", async (trial) => {
    await trial.apply(leases, lease("a", { leaseDurationSeconds: undefined, holderIdentity: "one" }));
    const changed = await trial.apply(
      leases,
      { metadata: { name: "a" }, spec: { holderIdentity: "two" } },
      { ...beta, force: true },
    );
    assert.deepEqual(managedBy(changed, "alpha"), []);
  }),
  contractCase("apply: an emptied map still belongs to whoever made it by an Update", async (trial) => {
    await trial.create(secrets, secret("a", { key: "one" }), { fieldManager: "editor" });
    await trial.apply(secrets, secret("a", { key: "two" }), { force: true });
    const emptied = await trial.apply(secrets, { metadata: { name: "a" } });
    assert.equal(at(emptied, "data"), undefined);
    assert.deepEqual(ownedFields(emptied, "editor", "Update"), ["data", "type"]);
  }),
  contractCase("apply: three owners of a field, and it stays until the third releases it", async (trial) => {
    for (const options of [alpha, beta, gamma])
      await trial.apply(secrets, secret("a", { key: "1" }), options);
    await trial.apply(secrets, { metadata: { name: "a" } }, alpha);
    const still = await trial.apply(secrets, { metadata: { name: "a" } }, beta);
    assert.equal(at(still, "data.key"), base64("1"));
    const gone = await trial.apply(secrets, { metadata: { name: "a" } }, gamma);
    assert.equal(at(gone, "data"), undefined);
  }),
  contractCase("apply: a map that others still have keys in stays", async (trial) => {
    await trial.apply(secrets, secret("a", {}, { annotations: { one: "1" } }));
    await trial.apply(secrets, secret("a", {}, { annotations: { two: "2" } }), beta);
    const applied = await trial.apply(secrets, secret("a"));
    assert.deepEqual(applied.metadata?.annotations, { two: "2" });
  }),
];
