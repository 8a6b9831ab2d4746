// What a person would try with a policy. It has no pods.
import { isDeepStrictEqual } from "node:util";
import { policyKind } from "../kinds/policy/policy-document.ts";
import { type CustomObject, ciliumNetworkPolicies } from "../kube/resources.ts";
import type { Row } from "../server/store.ts";
import { editByHand } from "./cluster-mishaps.ts";
import type { DeedRegion, Deeds } from "./deed.ts";

type Policy = Row<"policy">;

export const policyDeeds: Deeds<"policy"> = { orderDeletion, toggleBadSpec, editBehindBack };

async function orderDeletion({ admin, name }: DeedRegion, { id, spec }: Policy): Promise<string> {
  const version = await admin.deletePolicy(name, id);
  return `asked for the deletion of ${spec.k8sName} (v${version})`;
}

const otherKind = "NetworkPolicy";

async function toggleBadSpec({ admin, name }: DeedRegion, { spec, deploymentId }: Policy): Promise<string> {
  const document = documentOf(spec);
  const kind = document.kind === otherKind ? policyKind : otherKind;
  const policy = new TextEncoder().encode(JSON.stringify({ ...document, kind }));
  const version = await admin.setPolicy(name, { ...spec, policy }, deploymentId);
  return `asked for a ${kind} as ${spec.k8sName} (v${version})`;
}

function editBehindBack(region: DeedRegion, { spec }: Policy, signal: AbortSignal): Promise<string> {
  const { k8sNamespace: namespace, k8sName: name } = spec;
  const manifest: CustomObject = {
    metadata: { namespace, name },
    spec: { ingress: [{ fromEntities: ["all"] }] },
  };
  const told = `opened CiliumNetworkPolicy ${name} to everybody`;
  const wanted = documentOf(spec).spec;
  const isRepaired = (live: CustomObject) => isDeepStrictEqual(live.spec, wanted);
  return editByHand(region, { kind: ciliumNetworkPolicies, manifest, told, isRepaired }, signal);
}

/** The sample's own, so that it is known to be JSON. */
function documentOf({ policy }: Policy["spec"]): CustomObject {
  return JSON.parse(new TextDecoder().decode(policy));
}
