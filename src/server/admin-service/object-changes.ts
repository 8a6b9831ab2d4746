// The calls that change desired state: apply and scale. What they accept is checked as an agent would check it, and
// fields that are fixed while an object is desired are kept.
import { equals } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { ApplyDeploymentSchema } from "../../gen/ctrl/v1/deployment_pb.ts";
import {
  type ApplyObjectRequest,
  ApplyObjectResponse_Change as Change,
  type ObjectSpec,
  type ScaleObjectRequest,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import {
  type ApplyMessage,
  allKinds,
  type KindName,
  kindOf,
  kindsOwnedBy,
  oneOf,
} from "../../kinds/kinds.ts";
import { type ParsedMessage, quote, type Refuse } from "../../model/field-problem.ts";
import { parseId, parseReplicas } from "../../model/message-fields.ts";
import { createSpec } from "../kind-messages.ts";
import { checkVersion, putting, unreadable } from "../row-rules.ts";
import type {
  Author,
  Changed,
  Condition,
  Decide,
  PutOptions,
  Row,
  Store,
  StoredEnvironment,
} from "../store.ts";
import { badRequest, checked } from "./bad-request.ts";
import { withHostnames } from "./hostnames.ts";
import { type ParsedRef, parseRef, parseRegion } from "./object-refs.ts";
import { secretsBlob } from "./secrets-blob.ts";

/** The fields of an object that belongs to an environment. */
type TenantSpec = Extract<ApplyMessage<KindName>, { readonly environmentId: string }>;

export async function applyObject(store: Store, request: ApplyObjectRequest, author: Author) {
  const { region, object, deploymentId } = parseApply(request);
  const { kind, id, spec } = object;
  const options = { ...conditionOf(request), ...(deploymentId !== "" && { deploymentId }) };
  const { dryRun } = request;
  const changing =
    kindOf(kind).secrets !== undefined && "environmentId" in spec
      ? store.change(region, kind, id, withSecrets(kind, spec, { ...options, dryRun }), author, {
          dryRun,
          environmentId: spec.environmentId,
        })
      : store.change(region, kind, id, keeping(kind, spec, options), author, { dryRun });
  const hostnames = "hostnames" in spec ? spec.hostnames : [];
  const changed = await withHostnames(changing, `${kind}.hostnames`, hostnames);
  const change = changeOf(changed);
  const forNewPodsOnly = change === Change.CONFIGURED && kind === "deployment" && changesPods(changed);
  return { version: changed.after?.version ?? 0n, change, forNewPodsOnly };
}

/** Whether pods run, and would be different after the change. krane does not replace the pods of a deployment. */
function changesPods({ before, after }: Changed<KindName>): boolean {
  if (before?.desired !== "running" || after === undefined) return false;
  const [old, wanted] = [before.spec as ApplyMessage<"deployment">, after.spec as ApplyMessage<"deployment">];
  const scaled = createSpec("deployment", { ...old, replicas: wanted.replicas });
  return old.replicas > 0 && wanted.replicas > 0 && !equals(ApplyDeploymentSchema, scaled, wanted);
}

function parseApply(request: ApplyObjectRequest) {
  const owned = kindsOwnedBy("deployment");
  return checked((refuse) => {
    const region = parseRegion(request.region, refuse);
    const object = parseObject(request.spec, refuse);
    const { deploymentId } = request;
    if (deploymentId !== "" && !owned.some(({ name }) => name === object?.kind)) {
      const plurals = owned.map(({ plural }) => plural).join(" and ");
      refuse("deployment_id", `is only for ${plurals}; leave it empty`);
    } else if (deploymentId !== "") parseId("deployment_id", deploymentId, refuse);
    // Only used if something was rejected.
    return { region, object: object as AppliedObject, deploymentId };
  });
}

function keeping(kind: KindName, spec: ApplyMessage<KindName>, options: PutOptions): Decide<KindName> {
  const put = putting(spec, options);
  return (row) => {
    assertOwn(kind, row);
    const wanted = put(row);
    checkKeptFields(kind, row, spec);
    return wanted;
  };
}

/**
 * An object takes the secrets of its environment when it is created, and keeps them: otherwise its pods would change
 * with every secret, and a rollback would not restore what ran before.
 */
function withSecrets(
  kind: KindName,
  requested: TenantSpec,
  { dryRun, ...options }: PutOptions & { readonly dryRun: boolean },
): Decide<KindName> {
  const { secrets } = kindOf(kind);
  const keep = keeping(kind, requested, options);
  return (row, environment) => {
    const wanted = keep(row);
    if (environment !== undefined) checkOwner(kind, environment, requested);
    // What an older server accepted can still be changed, and a dry run may be about documents that create it first.
    else if (row?.desired !== "running" && !dryRun) throw noEnvironment(kind, requested.environmentId);
    if (wanted === undefined || secrets === undefined || secrets.blobOf(requested).length > 0) return wanted;
    const blob = row?.desired === "running" ? secrets.blobOf(row.spec) : environmentBlob(kind, environment);
    // The same message of the same kind, apart from its blob.
    return { ...wanted, spec: secrets.withBlob(requested, blob) as TenantSpec };
  };
}

/** Otherwise its pods would run without their secrets. */
function noEnvironment(kind: KindName, id: string): ConnectError {
  const message = `is ${quote(id)}, which does not exist; apply a document of kind Environment first`;
  return badRequest([{ path: `${kind}.environment_id`, message }]);
}

/** Checked as a blob in a request is: otherwise pods would start without their variables. */
export function environmentBlob(
  kind: KindName,
  environment: StoredEnvironment | undefined,
): Uint8Array<ArrayBuffer> {
  const blob = secretsBlob(environment?.secrets ?? new Map());
  checked((refuse) =>
    kindOf(kind).secrets?.check(blob, (path, message) => refuse(`${kind}.${path}`, message)),
  );
  return blob;
}

/** Otherwise a caller could get another owner's secrets by naming that owner's environment. */
export function checkOwner(
  kind: KindName | "app",
  environment: StoredEnvironment,
  spec: Pick<TenantSpec, "workspaceId" | "projectId">,
): void {
  const { id, workspaceId, projectId } = environment;
  checked((refuse) => {
    if (workspaceId !== "" && workspaceId !== spec.workspaceId) {
      refuse(`${kind}.workspace_id`, `is not the workspace of environment ${id}`);
    }
    if (projectId !== "" && projectId !== spec.projectId) {
      refuse(`${kind}.project_id`, `is not the project of environment ${id}`);
    }
  });
}

export async function scaleObject(store: Store, request: ScaleObjectRequest, author: Author) {
  const ref = parseRef(request.ref);
  const { region, kind, id } = ref;
  const replicas = checked((refuse) => parseReplicas(request.replicas, refuse));
  if (!kindOf(kind).makesPods) {
    const scaled = oneOf(allKinds.filter(({ makesPods }) => makesPods));
    const message = `must be ${scaled}: ${kindOf(kind).plural} have no pods`;
    throw badRequest([{ path: "ref.kind", message }]);
  }
  const decide = scaling(ref, replicas, conditionOf(request));
  const { before, after } = await store.change(region, kind, id, decide, author);
  const replicasBefore = before !== undefined && "replicas" in before.spec ? before.spec.replicas : 0;
  return { version: after?.version ?? 0n, replicasBefore };
}

function scaling(ref: ParsedRef, replicas: number, condition: Condition): Decide<KindName> {
  const { kind } = ref;
  return (row) => {
    if (row === undefined || row.desired === "stopped") throw notFound(ref);
    if (row.desired === "unreadable") throw unreadable(kind, row.id);
    assertOwn(kind, row);
    checkVersion(row, condition);
    const spec = createSpec(kind, row.spec);
    if ("replicas" in spec) spec.replicas = replicas;
    return { spec, desired: "running" };
  };
}

function changeOf({ before, after }: Changed<KindName>): Change {
  if (before === after) return Change.UNCHANGED;
  return before === undefined || before.desired === "stopped" ? Change.CREATED : Change.CONFIGURED;
}

export function conditionOf({
  expectedVersion,
}: {
  readonly expectedVersion?: bigint | undefined;
}): Condition {
  return expectedVersion === undefined ? {} : { expectedVersion };
}

export function notFound({ kind, id, region }: ParsedRef): ConnectError {
  return new ConnectError(`no ${kind} ${id} in region ${region}`, Code.NotFound);
}

// Converts the object in a request to what the store keeps. It is checked with the agent's
// own functions, so that a spec that the agent would reject is rejected here, while the
// caller can still fix it.

interface AppliedObject {
  readonly kind: KindName;
  readonly id: string;
  readonly spec: ApplyMessage<KindName>;
}

// Only the agent knows where it runs and which registries it allows.
const rules = { registries: [] };

/** Undefined if it was rejected. */
function parseObject(object: ObjectSpec | undefined, refuse: Refuse): AppliedObject | undefined {
  const { spec } = object ?? {};
  if (spec?.case === undefined) {
    refuse("spec", `needs ${oneOf(allKinds)}`);
    return undefined;
  }
  const { case: name, value } = spec;
  const kind = kindOf(name);
  record(name, kind.parseApply(value, rules), refuse);
  return { kind: name, id: kind.idOf(value), spec: value };
}

function record(prefix: string, outcome: ParsedMessage<unknown>, refuse: Refuse): void {
  if (outcome.kind === "valid") return;
  for (const { path, message } of outcome.problems) refuse(`${prefix}.${path}`, message);
}

// Rejects changes to fields that are fixed while an object is desired: its owner, and its place in the cluster.
//
// - The secrets of a deployment are encrypted for its environment. Moved to another one, its next pods could not
//   decrypt them.
// - Selectors, labels and network policies are derived from these fields. Under another name or namespace, the
//   previous object would be left behind in the cluster, still running.

// By their names in the .proto files, in the order of a document.
const keptFields = [
  ["workspace_id", "workspaceId"],
  ["project_id", "projectId"],
  ["environment_id", "environmentId"],
  ["k8s_namespace", "k8sNamespace"],
  ["k8s_name", "k8sName"],
] as const;

/** Throws with every field that would change. A stopped or unreadable object is replaced as a whole. */
function checkKeptFields<K extends KindName>(kind: K, row: Row<K> | undefined, spec: ApplyMessage<K>): void {
  if (row?.desired === "running") checkKept(kind, row.id, row.spec, spec);
}

export function checkKept(kind: KindName | "app", id: string, before: object, after: object): void {
  checked((refuse) => {
    for (const [path, field] of keptFields) {
      // Each kind has some of them.
      const value = (before as Partial<Record<string, unknown>>)[field];
      if (typeof value !== "string" || value === (after as Partial<Record<string, unknown>>)[field]) continue;
      refuse(`${kind}.${path}`, `must stay ${quote(value)} while ${kind} ${id} exists; use a new id`);
    }
  });
}

/** A release or a route is changed through its app: otherwise the two would differ. */
export function assertOwn(kind: KindName, row: Row<KindName> | undefined): void {
  // An ended release can no longer be changed through its app, and its id is free.
  if (row?.appId === undefined || row.desired === "stopped") return;
  const what = kind === "route" ? "the route" : "a release";
  const message = `${kind} ${row.id} is ${what} of app ${row.appId}; change or delete the app`;
  throw new ConnectError(message, Code.FailedPrecondition);
}
