// The actions for a policy, which has no pods.
import { isDeepStrictEqual } from "node:util";
import { ciliumPolicyKind } from "../kinds/policy/policy-document.ts";
import { type CustomObject, ciliumNetworkPolicies } from "../kube/resources.ts";
import { editByHand } from "./cluster-faults.ts";
import type { ActionRegion, KindActions } from "./kind-actions.ts";
import type { WantedObject } from "./wanted-objects.ts";

type Policy = WantedObject<"policy">;

export const policyActions: KindActions<"policy"> = { toggleBadSpec, editBehindBack };

const otherKind = "NetworkPolicy";

async function toggleBadSpec({ faults, name }: ActionRegion, { id, spec }: Policy): Promise<string> {
  const document = documentOf(spec);
  const kind = document.kind === otherKind ? ciliumPolicyKind : otherKind;
  const policy = new TextEncoder().encode(JSON.stringify({ ...document, kind }));
  const version = await faults.editUnchecked(name, "policy", id, (kept) => ({ ...kept, policy }));
  return `requested a ${kind} as ${spec.k8sName} (v${version})`;
}

function editBehindBack(region: ActionRegion, { spec }: Policy, signal: AbortSignal): Promise<string> {
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

/** The sample's own text, so it is known to be JSON. */
function documentOf({ policy }: Policy["spec"]): CustomObject {
  return JSON.parse(new TextDecoder().decode(policy));
}
