// Checks krane's permissions in the cluster. Sends a SelfSubjectAccessReview, which every account may create, for each
// call in cluster-calls.ts.
import { type AccessReview, accessReviews, clusterCalls } from "../agent/cluster-calls.ts";
import type { CallingPart, ClusterCall } from "../kinds/cluster-call.ts";
import type { KubeApi } from "../kube/api.ts";
import { selfSubjectAccessReviews } from "../kube/resources.ts";
import { type Finding, ok, problem } from "./finding.ts";

/** Rejects when the API server does not respond. */
export async function checkAccess(
  name: string,
  api: KubeApi,
  { parts, stateNamespace }: { readonly parts: readonly CallingPart[]; readonly stateNamespace: string },
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const calls = clusterCalls.filter(({ part }) => parts.includes(part));
  const reviews = accessReviews(calls, stateNamespace);
  const results = await Promise.all(
    reviews.map(async (review) => ({ review, isAllowed: await isAllowed(api, review, signal) })),
  );
  return judgeAccess(name, results);
}

async function isAllowed(api: KubeApi, { attributes }: AccessReview, signal: AbortSignal): Promise<boolean> {
  const review = { spec: { resourceAttributes: attributes } };
  const { status } = await api.create(selfSubjectAccessReviews, review, {}, signal);
  return status?.allowed === true;
}

export interface AccessResult {
  readonly review: AccessReview;
  readonly isAllowed: boolean;
}

/** Returns one finding for each listed call with missing permissions. */
function judgeAccess(name: string, results: readonly AccessResult[]): readonly Finding[] {
  const missing = new Map<ClusterCall, MissingCall>();
  for (const { review, isAllowed } of results) {
    if (isAllowed) continue;
    const { call, verb, attributes } = review;
    const verbs = missing.get(call)?.verbs ?? [];
    missing.set(call, { call, namespace: attributes.namespace, verbs: [...new Set([...verbs, verb])] });
  }
  if (missing.size === 0) return [ok(name, `all ${results.length} kinds of call are allowed`)];
  return [...missing.values()].map((one) => problem(name, findingOf(one), remedyOf(one)));
}

interface MissingCall {
  readonly call: ClusterCall;
  /** Undefined for all namespaces. */
  readonly namespace: string | undefined;
  readonly verbs: readonly string[];
}

function findingOf({ call, namespace, verbs }: MissingCall): string {
  const { kind, subresource, names, why } = call;
  const resource = [kind.plural, subresource].filter(Boolean).join("/");
  const what = kind.group === "" ? resource : `${resource}.${kind.group}`;
  const which = names === undefined ? what : `${what} named ${names.join(", ")}`;
  return `krane may not ${verbs.join(", ")} ${which}${placeOf(kind.namespaced, namespace)}: ${why}`;
}

function placeOf(isNamespaced: boolean, namespace: string | undefined): string {
  if (!isNamespaced) return "";
  return namespace === undefined ? " in all namespaces" : ` in namespace ${namespace}`;
}

function remedyOf({ call: { kind, subresource, names }, namespace, verbs }: MissingCall): string {
  const rule = {
    apiGroups: [kind.group],
    resources: [[kind.plural, subresource].filter(Boolean).join("/")],
    ...(names !== undefined && { resourceNames: names }),
    verbs,
  };
  const role = namespace === undefined ? "ClusterRole" : `Role in namespace ${namespace}`;
  return `apply the roles in deploy/, or add this rule to krane's ${role}: ${JSON.stringify(rule)}`;
}
