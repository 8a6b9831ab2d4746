// One object as shown to people: its desired state, its phase and what is running.
// Encrypted values are not included; only the names of secrets are.
import { create } from "@bufbuild/protobuf";
import {
  ObjectView_Desired as Desired,
  type ObjectSpec,
  ObjectSpecSchema,
  type ObjectView,
  ObjectViewSchema,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { type ApplyMessage, type KindName, kindOf } from "../../kinds/kinds.ts";
import { phaseFacts, phaseOf } from "../phase.ts";
import type { AgentReport, StoredObject } from "../store.ts";
import { refOf } from "./object-refs.ts";

const desiredStates = {
  running: Desired.RUNNING,
  stopped: Desired.STOPPED,
  unreadable: Desired.UNSPECIFIED,
} as const;

export function objectView<K extends KindName>(
  region: string,
  kind: K,
  object: StoredObject<K>,
  agent: AgentReport | undefined,
): ObjectView {
  const { row, report } = object;
  const facts = phaseFacts(kind, object, agent);
  const { trouble, isSettled: settled } = facts;
  const spec = row.desired === "unreadable" ? undefined : specView(kind, row.spec);
  return create(ObjectViewSchema, {
    ref: refOf({ region, kind, id: row.id }),
    namespace: kindOf(kind).namespaceOf(row.spec),
    name: row.spec.k8sName,
    version: row.version,
    desired: desiredStates[row.desired],
    ...(spec !== undefined && { spec }),
    phase: phaseOf(facts),
    settled,
    ...(trouble !== undefined && { trouble }),
    ...(report !== undefined && kindOf(kind).reports?.viewOf(report)),
    deploymentId: row.deploymentId ?? "",
    secretNames: secretNames(kind, row.spec),
  });
}

function specView<K extends KindName>(kind: K, spec: ApplyMessage<K>): ObjectSpec {
  const value = kindOf(kind).secrets?.withBlob(spec, new Uint8Array()) ?? spec;
  // The kind determines the message type.
  return create(ObjectSpecSchema, { spec: { case: kind, value } as ObjectSpec["spec"] });
}

function secretNames(kind: KindName, spec: ApplyMessage<KindName>): string[] {
  const { secrets } = kindOf(kind);
  return secrets?.namesIn(secrets.blobOf(spec)) ?? [];
}
