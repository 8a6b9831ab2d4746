import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { applyDeployment } from "../../../test/support/deployment-messages.ts";
import {
  ApplyObjectResponse_Change as Change,
  ObjectKind,
  PlanDocumentsRequestSchema,
  type PlanDocumentsResponse,
  RenderObjectRequestSchema,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { MemoryStore } from "../memory-store.ts";
import { applyApp } from "./apps.ts";
import { planDocuments } from "./document-plans.ts";
import { applyEnvironment } from "./environments.ts";
import { applyObject } from "./object-changes.ts";
import { renderObject } from "./renderings.ts";

const region = "local.dev";
const author = { by: "ann", atMs: 0 };

const environment = `apiVersion: krane/v1
kind: Environment
id: env_shop
workspace: ws_acme
project: prj_shop
`;
const web = (more = "image: registry.example/web:1") => `apiVersion: krane/v1
kind: Deployment
id: d_web
name: web
namespace: acme
workspace: ws_acme
project: prj_shop
environment: env_shop
${more}
`;
const app = web().replace("kind: Deployment", "kind: App").replaceAll("d_web", "app_web");

async function createWorld() {
  const store = new MemoryStore();
  await store.registerRegion(region);
  const plan = async (text: string): Promise<Pick<PlanDocumentsResponse, "documents" | "problems">> => ({
    documents: [],
    problems: [],
    ...(await planDocuments(store, create(PlanDocumentsRequestSchema, { region, text }), author)),
  });
  /** Makes the planned calls, as a page does. */
  const apply = async (text: string) => {
    for (const { call } of (await plan(text)).documents) {
      if (call.case === "environment") await applyEnvironment(store, call.value, author);
      else if (call.case === "app") await applyApp(store, call.value, author);
      else if (call.case === "object") await applyObject(store, call.value, author);
    }
  };
  return { store, plan, apply };
}

const problemsIn = ({ problems }: Pick<PlanDocumentsResponse, "problems">) =>
  problems.map(({ line, path, problem }) => `${line} ${path}: ${problem}`);

test("a plan changes nothing, and its calls do what it says, environments first", async () => {
  const { store, plan, apply } = await createWorld();
  const text = `${web()}---\n${environment}---\n${app.replaceAll("name: web", "name: shop")}`;
  const { documents, problems } = await plan(text);
  assert.deepEqual(problems, []);
  assert.deepEqual(
    documents.map(({ ref, change }) => [ref?.kind, ref?.id, change]),
    [
      [ObjectKind.ENVIRONMENT, "env_shop", Change.CREATED],
      [ObjectKind.DEPLOYMENT, "d_web", Change.CREATED],
      [ObjectKind.APP, "app_web", Change.CREATED],
    ],
  );
  assert.equal(documents[2]?.release, 1);
  assert.equal(await store.row(region, "deployment", "d_web"), undefined);
  await apply(text);
  assert.equal((await store.row(region, "deployment", "d_web"))?.desired, "running");
  assert.equal((await store.app(region, "app_web")).app?.releases.length, 1);
  assert.deepEqual(
    (await plan(text)).documents.map(({ change, fields }) => [change, fields.length]),
    [
      [Change.UNCHANGED, 0],
      [Change.UNCHANGED, 0],
      [Change.UNCHANGED, 0],
    ],
  );
});

test("a plan shows which fields would be different, and that running pods stay", async () => {
  const { plan, apply } = await createWorld();
  await apply(`${environment}---\n${web()}`);
  const { documents } = await plan(web("image: registry.example/web:2\ncommand: [serve]"));
  const [planned] = documents;
  assert.equal(planned?.change, Change.CONFIGURED);
  assert.equal(planned.forNewPodsOnly, true);
  assert.deepEqual(
    planned.fields.map(({ field, before, after }) => [field, before, after]),
    [
      ["image", '"registry.example/web:1"', '"registry.example/web:2"'],
      ["command[0]", undefined, '"serve"'],
    ],
  );
});

test("a planned call is refused if somebody changed the object meanwhile", async () => {
  const { store, plan, apply } = await createWorld();
  await apply(`${environment}---\n${web()}`);
  const [planned] = (await plan(web("image: registry.example/web:2"))).documents;
  await apply(web("image: registry.example/web:3"));
  assert.equal(planned?.call.case, "object");
  if (planned?.call.case === "object")
    await assert.rejects(applyObject(store, planned.call.value, author), { code: "version_mismatch" });
});

test("what was deleted is planned as new, and can be applied", async () => {
  const { store, plan, apply } = await createWorld();
  await apply(`${environment}---\n${web()}`);
  await store.stop(region, "deployment", "d_web", author);
  const [planned] = (await plan(web())).documents;
  assert.equal(planned?.change, Change.CREATED);
  assert.ok(planned.fields.some(({ field, before }) => field === "image" && before === undefined));
  await apply(web());
  assert.equal((await store.row(region, "deployment", "d_web"))?.desired, "running");
});

test("every problem is listed with its line and the name that the field has in documents", async () => {
  const { plan, apply } = await createWorld();
  assert.match(problemsIn(await plan("kind: Nothing")).join("\n"), /^1 apiVersion: must be/);
  assert.deepEqual(problemsIn(await plan(`${environment}---\n${web("image: x\nreplicas: -1")}`)), [
    "16 replicas: must be from 0 to 10000, but is -1",
  ]);
  assert.deepEqual(problemsIn(await plan(web())), [
    "1 environmentId: env_shop does not exist; add a document of kind Environment",
  ]);
  await apply(`${environment}---\n${web()}`);
  // Only the control plane can refuse this.
  const [moved] = problemsIn(await plan(web().replace("namespace: acme", "namespace: other")));
  assert.match(moved ?? "", /^1 namespace: must stay "acme"/);
  assert.deepEqual(problemsIn(await plan(`${environment}region: nowhere.aws\n`)), [
    "1 region: nowhere.aws is unknown to this server",
  ]);
});

test("the manifests of a deployment are those of the agent, without encrypted values", async () => {
  const { store } = await createWorld();
  const blob = Buffer.from(JSON.stringify({ secrets: { KEY: "sealed-value" } }));
  const spec = applyDeployment({ encryptedEnvironmentVariables: blob });
  await store.put(region, "deployment", spec, author);
  const ref = { region, kind: ObjectKind.DEPLOYMENT, id: spec.deploymentId };
  const render = () => renderObject(store, create(RenderObjectRequestSchema, { ref }));
  const { manifests } = await render();
  assert.deepEqual(manifests.match(/^kind: \w+/gm), [
    "kind: Namespace",
    "kind: CiliumNetworkPolicy",
    "kind: ReplicaSet",
  ]);
  assert.match(manifests, /name: UNKEY_ENCRYPTED_ENV\n\s+value: "?\[redacted\]/);
  assert.match(manifests, /serviceAccountToken/);
  assert.doesNotMatch(manifests, /sealed-value|-hash: |[A-Za-z0-9+/]{64,}/);
  await store.stop(region, "deployment", spec.deploymentId, author);
  await assert.rejects(render(), /has no manifests: it is to be deleted/);
});
