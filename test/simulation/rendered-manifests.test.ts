// What `krane render` shows is what an agent sends: the same documents go through the command, and through a
// control plane and all controllers, wired by the agent's own table, to a cluster that writes down every
// body it is sent.
import assert from "node:assert/strict";
import { test } from "node:test";
import { controllerOptions } from "../../src/agent/controllers.ts";
import { main } from "../../src/cli/main.ts";
import { parseConfig } from "../../src/config/parse.ts";
import { parseDocuments } from "../../src/documents/parse.ts";
import type { AppSpec } from "../../src/gen/krane/admin/v1/app_pb.ts";
import { appRoute } from "../../src/kinds/app-route.ts";
import { releaseTemplate } from "../../src/kinds/deployment/release-names.ts";
import { type AnyDocument, loadDocumentKinds } from "../../src/kinds/documents.ts";
import { allKinds } from "../../src/kinds/kinds.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { annotationKeys } from "../../src/model/labels.ts";
import { ciphertextOf } from "../support/ciphertext.ts";
import { FakeIo } from "../support/fake-io.ts";
import { createQuietLog } from "../support/quiet-log.ts";
import { region, type SimulatedAgent, SimulatedRegion } from "./simulated-region.ts";

const owner = `workspace: ws_demo
project: proj_demo
environment: env_demo`;

const documents = `apiVersion: krane/v1
kind: Environment
id: env_demo
workspace: ws_demo
project: proj_demo
---
apiVersion: krane/v1
kind: Deployment
id: d_plain
name: plain
namespace: demo
${owner}
image: other.example/plain:1
pullSecret: krane-registry-acme
env:
  LOG_LEVEL: info
---
apiVersion: krane/v1
kind: Deployment
region: ${region}
id: d_full
name: full
namespace: demo
${owner}
image: registry.example/full:1
replicas: 3
cpu: "1.5"
memory: 1Gi
port: 9000
command: [node, server.js, "--loud"]
shutdownSignal: SIGINT
buildId: b_1
healthcheck: {method: POST, path: /up, intervalSeconds: 5}
encryptedSecrets:
  DB_PASSWORD: ${ciphertextOf("one")}
  API_KEY: ${ciphertextOf("two")}
---
apiVersion: krane/v1
kind: Deployment
id: d_other
name: other
namespace: other
workspace: ws_other
project: proj_demo
environment: env_other
image: registry.example/other:1
healthcheck: {}
---
apiVersion: krane/v1
kind: Sentinel
id: s_demo
name: gate
${owner}
image: registry.example/sentinel:1
replicas: 2
---
apiVersion: krane/v1
kind: Policy
id: cnp_1
name: allow-dns
namespace: policies
deployment: d_full
policy:
  apiVersion: cilium.io/v2
  kind: CiliumNetworkPolicy
  metadata: {name: ignored, labels: {a: b}}
  specs:
    - endpointSelector: {matchLabels: {app: web}}
      egress:
        - toPorts: [{ports: [{port: "53", protocol: UDP}]}]
    - endpointSelector: {}
---
apiVersion: krane/v1
kind: Route
id: rt_plain
name: plain
namespace: demo
${owner}
deployment: d_plain
---
apiVersion: krane/v1
kind: App
id: app_web
name: web
namespace: demo
${owner}
image: registry.example/web:1
port: 80
expose: environment
`;

const file = `region = "${region}"

[control]
url = "http://127.0.0.1:7091"
token = "simulation-token"

[registry]
url = "registry.example"
username = "robot"
password = "not-a-real-password"

[secrets]
audience = "the-agent"
endpoint = "http://krane.krane.svc:8070"

[scheduler]
token = "simulation-token"
scrape = true
`;

const ownNamespace = "krane-system";
const kinds = await loadDocumentKinds();

function parsedDocuments(): readonly AnyDocument[] {
  const parsed = parseDocuments([{ name: "all.yaml", text: documents }], kinds);
  assert.equal(parsed.kind, "valid");
  return parsed.kind === "valid" ? parsed.documents : [];
}

async function render(...flags: readonly string[]): Promise<{ readonly io: FakeIo; readonly code: number }> {
  const io = new FakeIo({ "all.yaml": documents, "krane.toml": file });
  return { io, code: await main(["render", "-f", "all.yaml", ...flags], {}, io) };
}

async function renderedAs(...flags: readonly string[]): Promise<readonly KubeObject[]> {
  const { io, code } = await render("-o", "json", "--show-secrets", ...flags);
  assert.equal(code, 0, io.stderr.text);
  return (JSON.parse(io.stdout.text) as { readonly items: readonly KubeObject[] }).items;
}

/** The last body that was sent for each object, in a cluster that was empty before. */
async function sentByAgent(configText: string, place: { readonly ownNamespace?: string }) {
  const outcome = parseConfig({
    file: { path: "krane.toml", text: configText },
    env: {},
    flags: {},
    randomId: () => "00000000",
  });
  if (outcome.kind === "invalid") throw new Error(JSON.stringify(outcome.problems));
  const { config } = outcome;
  const world = await SimulatedRegion.create();
  const newest = new Map<string, bigint>();
  const { admin } = world.plane;
  for (const document of parsedDocuments()) {
    if (document.kind === "app") await startApp(admin, document.spec, newest);
    else if (document.kind === "deployment")
      newest.set("deployments", await admin.setDeployment(region, document.spec));
    else if (document.kind === "sentinel")
      newest.set("sentinels", await admin.setSentinel(region, document.spec));
    else if (document.kind === "policy") newest.set("cilium", await admin.setPolicy(region, document.spec));
    else if (document.kind === "route") newest.set("routes", await admin.setRoute(region, document.spec));
  }
  const registry = config.registry && {
    host: config.registry.url,
    username: config.registry.username,
    password: { reveal: () => "not-a-real-password" },
  };
  const agents = await Promise.all(
    allKinds.map(async (kind) => {
      const createController = await kind.loadController();
      const login = kind.makesPods && registry ? { registry } : {};
      const options = {
        ...controllerOptions(config, { stateNamespace: "krane", ...place, ...login }, createQuietLog()),
        workers: 4,
      };
      return world.createAgentOf(kind.controller, (deps) => createController(options, deps));
    }),
  );
  for (const { controller } of agents) await world.resolved(controller.start(new AbortController().signal));
  await world.until("everything is settled", () =>
    allKinds.every(
      (kind, index) => agents[index]?.controller.status().stream?.cursor === newest.get(kind.controller),
    ),
  );
  const sent = lastBodies(agents);
  await world.stop();
  return sent;
}

/** As the control plane has it once its first release is current. */
async function startApp(
  admin: SimulatedRegion["plane"]["admin"],
  spec: AppSpec,
  newest: Map<string, bigint>,
): Promise<void> {
  const release = releaseTemplate(spec, 1);
  const route = appRoute(spec, release.deploymentId, [release]);
  assert.ok(route !== undefined, "it has no route");
  newest.set("deployments", await admin.setDeployment(region, release));
  newest.set("routes", await admin.setRoute(region, route));
}

function lastBodies(agents: readonly Pick<SimulatedAgent, "writes">[]): ReadonlyMap<string, KubeObject> {
  const bodies = new Map<string, KubeObject>();
  for (const { verb, manifest } of agents.flatMap(({ writes }) => writes)) {
    assert.ok(verb === "apply" || verb === "create", `an unexpected ${verb}`);
    // An object that is there already is named by its uid.
    if (manifest) bodies.set(titleOf(manifest), withoutUid(manifest));
  }
  return bodies;
}

function titleOf({ kind, metadata }: KubeObject): string {
  return `${kind} ${metadata?.namespace ?? ""}/${metadata?.name}`;
}

function withoutUid({ metadata, ...object }: KubeObject): KubeObject {
  const { uid: _, ...rest } = metadata ?? {};
  return { ...object, metadata: rest };
}

/** Without what names an owner that only the cluster knows, and without the hash, which follows from it. */
function withoutOwner(object: KubeObject): KubeObject {
  const { ownerReferences, annotations, ...metadata } = object.metadata ?? {};
  if (ownerReferences === undefined) return object;
  const owners = ownerReferences.map((owner) => ({ ...owner, uid: "" }));
  const { [annotationKeys.manifestHash]: hash, ...others } = annotations ?? {};
  assert.ok(hash, "a manifest without its hash");
  return { ...object, metadata: { ...metadata, ownerReferences: owners, annotations: others } };
}

/** Only the agent has the key. */
function withoutSeal(object: KubeObject): KubeObject {
  const { [annotationKeys.seal]: _, ...annotations } = object.metadata?.annotations ?? {};
  const isBare = Object.keys(annotations).length === 0;
  const { annotations: __, ...metadata } = object.metadata ?? {};
  return { ...object, metadata: isBare ? metadata : { ...metadata, annotations } };
}

function assertSame(rendered: readonly KubeObject[], sent: ReadonlyMap<string, KubeObject>): void {
  const shown = new Map(rendered.map((object) => [titleOf(object), object]));
  assert.deepEqual([...shown.keys()].sort(), [...sent.keys()].sort());
  for (const [title, object] of shown) {
    const body = JSON.parse(JSON.stringify(sent.get(title)));
    assert.deepEqual(withoutOwner(object), withoutOwner(withoutSeal(body)), title);
  }
}

test("with the agent's configuration, what is rendered is what the agent sends", async () => {
  const rendered = await renderedAs("--config", "krane.toml", "--krane-namespace", ownNamespace);
  assertSame(rendered, await sentByAgent(file, { ownNamespace }));
  assert.equal(rendered.length, 22);
});

test("without one, it is what an agent sends that has only what it must have", async () => {
  const least = `region = "${region}"\n[control]\nurl = "http://127.0.0.1:7091"\ntoken = "simulation-token"\n`;
  assertSame(await renderedAs(), await sentByAgent(least, {}));
});

test("each object comes after what it needs", async () => {
  const titles = (await renderedAs("--config", "krane.toml")).map(titleOf);
  for (const needed of ["Namespace /demo", "Secret demo/krane-registry"])
    assert.ok(titles.indexOf(needed) < titles.indexOf("ReplicaSet demo/full"), needed);
  const policy = titles.findIndex((title) =>
    title.startsWith("CiliumNetworkPolicy demo/allow-sentinel-ingress"),
  );
  assert.ok(policy >= 0 && policy < titles.indexOf("ReplicaSet demo/plain"));
});

test("an owner uid that only the cluster knows is empty, and a message says so", async () => {
  const service = (await renderedAs()).find((each) => titleOf(each) === "Service sentinel/gate");
  assert.equal(service?.metadata?.ownerReferences?.[0]?.uid, "");
  const { io } = await render();
  assert.match(
    io.stderr.text,
    /^krane: Service sentinel\/gate: the uid of its owner Deployment is set by the cluster/m,
  );
});

test("the registry's password is shown only on request", async () => {
  const { io, code } = await render("--config", "krane.toml", "--krane-namespace", ownNamespace);
  assert.equal(code, 0);
  const { io: open } = await render("--config", "krane.toml", "--show-secrets");
  const encoded = Buffer.from("robot:not-a-real-password").toString("base64");
  const auths = (text: string) =>
    [...text.matchAll(/\.dockerconfigjson: (\S+)/g)].map(([, data = ""]) =>
      Buffer.from(data, "base64").toString(),
    );
  assert.ok(auths(open.stdout.text).every((auth) => auth.includes(encoded)));
  assert.ok(
    auths(io.stdout.text).length === 3 && !auths(io.stdout.text).some((auth) => auth.includes(encoded)),
  );
  assert.match(io.stderr.text, /the data of Secret demo\/krane-registry is redacted/);
});
