// Whether the API server would let krane do all that it does. Each call of the one list is asked about by a
// SelfSubjectAccessReview, which everybody may ask.
import {
  type AccessReview,
  accessReviews,
  type CallingPart,
  type ClusterCall,
  clusterCalls,
} from "../agent/cluster-calls.ts";
import type { KubeApi } from "../kube/api.ts";
import { selfSubjectAccessReviews } from "../kube/kinds.ts";
import { type Finding, ok, problem } from "./finding.ts";

/** Rejects where the API server does not answer. */
export async function checkAccess(
  name: string,
  api: KubeApi,
  parts: readonly CallingPart[],
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const questions = accessReviews(clusterCalls.filter(({ part }) => parts.includes(part)));
  const answers = await Promise.all(
    questions.map(async (question) => ({ question, isAllowed: await isAllowed(api, question, signal) })),
  );
  return judgeAccess(name, answers);
}

async function isAllowed(api: KubeApi, { attributes }: AccessReview, signal: AbortSignal): Promise<boolean> {
  const review = { spec: { resourceAttributes: attributes } };
  const { status } = await api.create(selfSubjectAccessReviews, review, {}, signal);
  return status?.allowed === true;
}

export interface AccessAnswer {
  readonly question: AccessReview;
  readonly isAllowed: boolean;
}

/** One finding for each row of the list in which something is missing. */
export function judgeAccess(name: string, answers: readonly AccessAnswer[]): readonly Finding[] {
  const missing = new Map<ClusterCall, Set<string>>();
  for (const { question, isAllowed } of answers) {
    if (isAllowed) continue;
    const verbs = missing.get(question.call) ?? new Set();
    missing.set(question.call, verbs.add(question.verb));
  }
  if (missing.size === 0) return [ok(name, `all ${answers.length} kinds of call are allowed`)];
  return [...missing].map(([call, verbs]) =>
    problem(name, findingOf(call, [...verbs]), remedyOf(call, [...verbs])),
  );
}

function findingOf(call: ClusterCall, verbs: readonly string[]): string {
  const { kind, subresource, namespace, names, why } = call;
  const resource = [kind.plural, subresource].filter(Boolean).join("/");
  const what = kind.group === "" ? resource : `${resource}.${kind.group}`;
  const which = names === undefined ? what : `${what} called ${names.join(", ")}`;
  return `krane may not ${verbs.join(", ")} ${which}${placeOf(kind.namespaced, namespace)}: ${why}`;
}

function placeOf(isNamespaced: boolean, namespace: string | undefined): string {
  if (!isNamespaced) return "";
  return namespace === undefined ? " in all namespaces" : ` in namespace ${namespace}`;
}

function remedyOf({ kind, subresource, namespace, names }: ClusterCall, verbs: readonly string[]): string {
  const rule = {
    apiGroups: [kind.group],
    resources: [[kind.plural, subresource].filter(Boolean).join("/")],
    ...(names !== undefined && { resourceNames: names }),
    verbs,
  };
  const role = namespace === undefined ? "ClusterRole" : `Role in namespace ${namespace}`;
  return `apply the roles of deploy/, or add to krane's ${role}: ${JSON.stringify(rule)}`;
}
