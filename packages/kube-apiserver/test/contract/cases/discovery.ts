// What clients such as kubectl ask before anything else, and the tables that they print.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import {
  appsDeployment,
  appsDeployments,
  namespaces,
  pendingPod,
  pods,
  replicaSet,
  replicaSets,
  secret,
  secrets,
  service,
  services,
} from "../fixtures.ts";
import { at, type Kind } from "../manifest.ts";
import type { Trial } from "../trial.ts";

type Fields = Readonly<Record<string, unknown>>;

const tableType = "application/json;as=Table;g=meta.k8s.io;v=v1";

async function read(trial: Trial, path: string, accept = "application/json"): Promise<unknown> {
  const { status, body } = await trial.send({ method: "GET", path, accept });
  assert.equal(status, 200, path);
  return body;
}

async function resourcesOf(trial: Trial, path: string): Promise<ReadonlyMap<string, Fields>> {
  const list = at(await read(trial, path), "resources") as readonly Fields[];
  return new Map(list.map((resource) => [String(resource["name"]), resource]));
}

function tableOf(trial: Trial, kind: Kind, name?: string): Promise<unknown> {
  return read(trial, trial.path(kind, name), tableType);
}

function columnsOf(table: unknown): readonly string[] {
  const columns = at(table, "columnDefinitions") as readonly { name: string; priority: number }[];
  return columns.filter((column) => column.priority === 0).map((column) => column.name);
}

const allVerbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

export const discoveryCases = [
  contractCase("discovery: /version names a version of Kubernetes", async (trial) => {
    const version = await read(trial, "/version");
    assert.equal(at(version, "major"), "1");
    assert.match(String(at(version, "gitVersion")), /^v1\.\d+\.\d+/);
  }),
  contractCase("discovery: /healthz, /livez and /readyz say ok", async (trial) => {
    for (const path of ["/healthz", "/livez", "/readyz"]) assert.equal(await read(trial, path), "ok");
  }),
  contractCase("discovery: /api has version v1", async (trial) => {
    const answer = await read(trial, "/api");
    assert.equal(at(answer, "kind"), "APIVersions");
    assert.deepEqual(at(answer, "versions"), ["v1"]);
  }),
  contractCase("discovery: /apis lists groups with their preferred versions", async (trial) => {
    const answer = await read(trial, "/apis");
    assert.equal(at(answer, "kind"), "APIGroupList");
    const groups = at(answer, "groups") as readonly Fields[];
    for (const name of ["apps", "policy", "coordination.k8s.io", "node.k8s.io", "apiextensions.k8s.io"]) {
      const group = groups.find((one) => one["name"] === name);
      assert.deepEqual(at(group, "preferredVersion"), { groupVersion: `${name}/v1`, version: "v1" });
    }
  }),
  contractCase("discovery: /apis/apps is one group", async (trial) => {
    const answer = await read(trial, "/apis/apps");
    assert.equal(at(answer, "kind"), "APIGroup");
    assert.equal(at(answer, "name"), "apps");
  }),
  contractCase("discovery: /api/v1 describes pods and what stands below them", async (trial) => {
    const resources = await resourcesOf(trial, "/api/v1");
    const pod = resources.get("pods");
    assert.equal(pod?.["kind"], "Pod");
    assert.equal(pod?.["singularName"], "pod");
    assert.equal(pod?.["namespaced"], true);
    assert.deepEqual(pod?.["verbs"], allVerbs);
    assert.deepEqual(pod?.["shortNames"], ["po"]);
    assert.deepEqual(pod?.["categories"], ["all"]);
    assert.deepEqual(resources.get("pods/status")?.["verbs"], ["get", "patch", "update"]);
    assert.deepEqual(resources.get("pods/eviction")?.["verbs"], ["create"]);
    assert.equal(resources.get("pods/eviction")?.["group"], "policy");
    assert.equal(resources.get("namespaces")?.["namespaced"], false);
    assert.equal(resources.get("serviceaccounts/token")?.["kind"], "TokenRequest");
  }),
  contractCase("discovery: /apis/apps/v1 describes ReplicaSets with status and scale", async (trial) => {
    const resources = await resourcesOf(trial, "/apis/apps/v1");
    assert.deepEqual(resources.get("replicasets")?.["verbs"], allVerbs);
    assert.deepEqual(resources.get("replicasets")?.["shortNames"], ["rs"]);
    assert.equal(resources.get("replicasets/scale")?.["kind"], "Scale");
    assert.deepEqual(resources.get("replicasets/scale")?.["verbs"], ["get", "patch", "update"]);
  }),
  contractCase("discovery: reviews can only be created", async (trial) => {
    const resources = await resourcesOf(trial, "/apis/authentication.k8s.io/v1");
    assert.deepEqual(resources.get("tokenreviews")?.["verbs"], ["create"]);
  }),
  contractCase("discovery: everything at once, as newer clients ask for it", async (trial) => {
    const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    const answer = await read(trial, "/apis", accept);
    assert.equal(
      `${at(answer, "apiVersion")} ${at(answer, "kind")}`,
      "apidiscovery.k8s.io/v2 APIGroupDiscoveryList",
    );
    const groups = at(answer, "items") as readonly Fields[];
    const apps = groups.find((group) => at(group, "metadata.name") === "apps");
    const resources = at(apps, "versions.0.resources") as readonly Fields[];
    const found = resources.find((one) => one["resource"] === "replicasets");
    assert.equal(at(found, "responseKind.kind"), "ReplicaSet");
    assert.equal(at(found, "scope"), "Namespaced");
  }),
  contractCase("discovery: /openapi/v3 points to a document per group and version", async (trial) => {
    // The real server calls this document plain text.
    const answer = await read(trial, "/openapi/v3");
    const document = typeof answer === "string" ? JSON.parse(answer) : answer;
    const paths = at(document, "paths") as Record<string, Fields>;
    assert.match(String(paths["apis/apps/v1"]?.["serverRelativeURL"]), /^\/openapi\/v3\/apis\/apps\/v1/);
    assert.ok(paths["api/v1"]);
  }),
  contractCase("table: pods", async (trial) => {
    await trial.create(pods, pendingPod("a"));
    const table = await tableOf(trial, pods);
    assert.equal(`${at(table, "apiVersion")} ${at(table, "kind")}`, "meta.k8s.io/v1 Table");
    assert.deepEqual(columnsOf(table), ["Name", "Ready", "Status", "Restarts", "Age"]);
    const cells = at(table, "rows.0.cells") as readonly unknown[];
    assert.deepEqual(cells.slice(0, 4), ["a", "0/1", "Pending", "0"]);
    assert.equal(at(table, "rows.0.object.kind"), "PartialObjectMetadata");
    assert.equal(at(table, "rows.0.object.metadata.name"), "a");
    assert.ok(at(table, "metadata.resourceVersion"));
  }),
  contractCase("table: of one object", async (trial) => {
    await trial.create(pods, pendingPod("a"));
    const table = await tableOf(trial, pods, "a");
    assert.equal((at(table, "rows") as unknown[]).length, 1);
  }),
  contractCase("table: ReplicaSets", async (trial) => {
    await trial.create(replicaSets, replicaSet("a"));
    const table = await tableOf(trial, replicaSets);
    assert.deepEqual(columnsOf(table), ["Name", "Desired", "Current", "Ready", "Age"]);
    assert.deepEqual((at(table, "rows.0.cells") as unknown[]).slice(0, 4), ["a", 0, 0, 0]);
  }),
  contractCase("table: Deployments, Services, Secrets and namespaces", async (trial) => {
    await trial.create(appsDeployments, appsDeployment("a", { paused: true }));
    await trial.create(services, service("a"));
    await trial.create(secrets, secret("a", { key: "value" }));
    assert.deepEqual(columnsOf(await tableOf(trial, appsDeployments)), [
      "Name",
      "Ready",
      "Up-to-date",
      "Available",
      "Age",
    ]);
    assert.deepEqual(columnsOf(await tableOf(trial, services)), [
      "Name",
      "Type",
      "Cluster-IP",
      "External-IP",
      "Port(s)",
      "Age",
    ]);
    assert.deepEqual(columnsOf(await tableOf(trial, secrets)), ["Name", "Type", "Data", "Age"]);
    const table = await tableOf(trial, namespaces, trial.namespace);
    assert.deepEqual(columnsOf(table), ["Name", "Status", "Age"]);
    assert.deepEqual((at(table, "rows.0.cells") as unknown[]).slice(0, 2), [trial.namespace, "Active"]);
  }),
  contractCase("table: a watch sends tables of one row, the first with the columns", async (trial) => {
    const { resourceVersion } = await trial.list(secrets);
    const stream = await trial.target.transport.stream(
      {
        method: "GET",
        path: trial.path(secrets),
        query: { watch: "true", resourceVersion },
        accept: tableType,
      },
      trial.signal,
    );
    await trial.create(secrets, secret("a"));
    for await (const value of stream.values) {
      assert.equal(at(value, "type"), "ADDED");
      assert.equal(at(value, "object.kind"), "Table");
      assert.equal(at(value, "object.rows.0.cells.0"), "a");
      assert.deepEqual(columnsOf(at(value, "object")), ["Name", "Type", "Data", "Age"]);
      break;
    }
  }),
  contractCase("table: a client that also takes plain JSON still gets a table", async (trial) => {
    const accept = `${tableType},application/json`;
    assert.equal(at(await read(trial, trial.path(secrets), accept), "kind"), "Table");
  }),
];
