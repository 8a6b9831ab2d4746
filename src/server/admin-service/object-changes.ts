// The calls that change what is wanted: apply and scale. See object-deletion.ts for delete.
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type ApplyObjectRequest,
  ApplyObjectResponse_Change as Change,
  type ScaleObjectRequest,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { parseSecretsBlob } from "../../kinds/deployment/secrets-blob.ts";
import { parseId, parseReplicas } from "../../model/message-fields.ts";
import { type Kind, kinds, type Spec, type SpecInit } from "../kinds.ts";
import { checkVersion, putting, unreadable } from "../row-rules.ts";
import type { Author, Changed, Condition, Decide, PutOptions, Store, StoredEnvironment } from "../store.ts";
import { type AppliedObject, parseObject } from "./applied-objects.ts";
import { badRequest, checked } from "./bad-request.ts";
import { checkKeptFields } from "./kept-fields.ts";
import { type ParsedRef, parseRef, parseRegion } from "./object-refs.ts";
import { secretsBlob } from "./secrets-blob.ts";

export async function applyObject(store: Store, request: ApplyObjectRequest, author: Author) {
  const { region, object, deploymentId } = parseApply(request);
  const condition = conditionOf(request);
  const owner = deploymentId === "" ? {} : { deploymentId };
  const dryRun = request.dryRun;
  const changed =
    object.kind === "deployment"
      ? await applyDeployment(store, region, object.spec, author, { condition, dryRun })
      : await applyAs(store, region, object, author, { ...condition, ...owner }, dryRun);
  return { version: changed.after?.version ?? 0n, change: changeOf(changed) };
}

function parseApply(request: ApplyObjectRequest) {
  return checked((refuse) => {
    const region = parseRegion(request.region, refuse);
    const object = parseObject(request.spec, refuse);
    const { deploymentId } = request;
    if (deploymentId !== "" && object?.kind !== "policy") {
      refuse("deployment_id", "is for policies alone: leave it empty");
    } else if (deploymentId !== "") parseId("deployment_id", deploymentId, refuse);
    // Only seen where something was refused.
    return { region, object: object as AppliedObject, deploymentId };
  });
}

function applyAs(
  store: Store,
  region: string,
  object: Exclude<AppliedObject, { kind: "deployment" }>,
  author: Author,
  options: PutOptions,
  dryRun: boolean,
): Promise<Changed<Kind>> {
  const { kind, id, spec } = object;
  // Twice the same, so that the types see each kind with its own spec.
  return kind === "sentinel"
    ? store.change(region, kind, id, keeping(kind, spec, options), author, { dryRun })
    : store.change(region, kind, id, keeping(kind, spec, options), author, { dryRun });
}

function keeping<K extends Kind>(kind: K, spec: Spec<K>, options: PutOptions): Decide<K> {
  const put = putting(spec, options);
  return (row) => {
    const wanted = put(row);
    checkKeptFields(kind, row, spec);
    return wanted;
  };
}

/**
 * A deployment takes the secrets of its environment when it comes to be, and keeps them: its pods would otherwise
 * change with every secret, and a rollback would not bring back what ran before.
 */
async function applyDeployment(
  store: Store,
  region: string,
  requested: Spec<"deployment">,
  author: Author,
  { condition, dryRun }: { readonly condition: Condition; readonly dryRun: boolean },
): Promise<Changed<"deployment">> {
  const { deploymentId, environmentId } = requested;
  const decide: Decide<"deployment"> = (row, environment) => {
    checkVersion(row, condition);
    checkKeptFields("deployment", row, requested);
    if (environment !== undefined) checkOwner(environment, requested);
    const spec = kinds.deployment.createSpec(requested as SpecInit<"deployment">);
    if (spec.encryptedEnvironmentVariables.length === 0) {
      spec.encryptedEnvironmentVariables =
        row?.desired === "running" ? row.spec.encryptedEnvironmentVariables : environmentBlob(environment);
    }
    return { spec, desired: "running" };
  };
  return store.change(region, "deployment", deploymentId, decide, author, { dryRun, environmentId });
}

/** Checked as one that comes with a request is: pods would otherwise start without their variables. */
function environmentBlob(environment: StoredEnvironment | undefined): Uint8Array {
  const blob = secretsBlob(environment?.secrets ?? new Map());
  checked((refuse) => parseSecretsBlob(blob, (path, message) => refuse(`deployment.${path}`, message)));
  return blob;
}

/** Whoever names the environment of somebody else would otherwise get the secrets of somebody else. */
function checkOwner(environment: StoredEnvironment, spec: Spec<"deployment">): void {
  const { id, workspaceId, projectId } = environment;
  checked((refuse) => {
    if (workspaceId !== "" && workspaceId !== spec.workspaceId) {
      refuse("deployment.workspace_id", `is not the workspace of environment ${id}`);
    }
    if (projectId !== "" && projectId !== spec.projectId) {
      refuse("deployment.project_id", `is not the project of environment ${id}`);
    }
  });
}

export async function scaleObject(store: Store, request: ScaleObjectRequest, author: Author) {
  const ref = parseRef(request.ref);
  const { kind } = ref;
  const replicas = checked((refuse) => parseReplicas(request.replicas, refuse));
  if (kind === "policy") {
    throw badRequest([
      { path: "ref.kind", message: "must be a deployment or a sentinel: policies have no pods" },
    ]);
  }
  const scale = <K extends "deployment" | "sentinel">(scaled: K) =>
    store.change(ref.region, scaled, ref.id, scaling(scaled, ref, replicas, conditionOf(request)), author);
  const { before, after } = await scale(kind);
  return { version: after?.version ?? 0n, replicasBefore: before?.spec.replicas ?? 0 };
}

function scaling<K extends "deployment" | "sentinel">(
  kind: K,
  ref: ParsedRef,
  replicas: number,
  condition: Condition,
): Decide<K> {
  return (row) => {
    if (row === undefined || row.desired === "stopped") throw notFound(ref);
    if (row.desired === "unreadable") throw unreadable(kind, row.id);
    checkVersion(row, condition);
    const spec = kinds[kind].createSpec(row.spec as SpecInit<K>);
    spec.replicas = replicas;
    return { spec, desired: "running" };
  };
}

function changeOf({ before, after }: Changed<Kind>): Change {
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
