// One object as people see it: what is wanted, what the agent made of it, what runs.
// Encrypted values stay here; of secrets only the names go out.
import { create } from "@bufbuild/protobuf";
import {
  ObjectView_Desired as Desired,
  type ObjectSpec,
  ObjectSpecSchema,
  type ObjectView,
  ObjectViewSchema,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { readSecretsBlob } from "../../kinds/deployment/secrets-blob.ts";
import { sentinelNamespace } from "../../model/labels.ts";
import { type Kind, kinds, type Spec, type SpecInit } from "../kinds.ts";
import { phaseFacts, phaseOf } from "../phase.ts";
import type { AgentReport, Row, StoredObject } from "../store.ts";
import { refOf } from "./object-refs.ts";

const desiredStates = {
  running: Desired.RUNNING,
  stopped: Desired.STOPPED,
  unreadable: Desired.UNSPECIFIED,
} as const;

export function objectView<K extends Kind>(
  region: string,
  kind: K,
  object: StoredObject<K>,
  agent: AgentReport | undefined,
): ObjectView {
  const { row, deployment, sentinel } = object;
  const facts = phaseFacts(kind, object, agent);
  const { trouble, isSettled: settled } = facts;
  const spec = row.desired === "unreadable" ? undefined : specView(kind, row.spec);
  return create(ObjectViewSchema, {
    ref: refOf({ region, kind, id: row.id }),
    namespace: "k8sNamespace" in row.spec ? row.spec.k8sNamespace : sentinelNamespace,
    name: row.spec.k8sName,
    version: row.version,
    desired: desiredStates[row.desired],
    ...(spec !== undefined && { spec }),
    phase: phaseOf(facts),
    settled,
    ...(trouble !== undefined && { trouble }),
    ...(deployment !== undefined && {
      deployment: {
        exists: deployment.exists,
        instances: [...deployment.instances],
        reportedAtMs: BigInt(Math.trunc(deployment.atMs)),
      },
    }),
    ...(sentinel !== undefined && {
      sentinel: {
        availableReplicas: sentinel.availableReplicas,
        health: sentinel.health,
        runningImage: sentinel.runningImage,
        reportedAtMs: BigInt(Math.trunc(sentinel.atMs)),
      },
    }),
    deploymentId: row.deploymentId ?? "",
    secretNames: secretNames(row),
  });
}

function specView<K extends Kind>(kind: K, spec: Spec<K>): ObjectSpec {
  const value = kinds[kind].createSpec(spec as SpecInit<K>);
  if ("encryptedEnvironmentVariables" in value) value.encryptedEnvironmentVariables = new Uint8Array();
  // The kind says which message it is.
  return create(ObjectSpecSchema, { spec: { case: kind, value } as ObjectSpec["spec"] });
}

function secretNames({ spec }: Row<Kind>): string[] {
  if (!("encryptedEnvironmentVariables" in spec)) return [];
  return [...(readSecretsBlob(spec.encryptedEnvironmentVariables)?.keys() ?? [])].sort();
}
