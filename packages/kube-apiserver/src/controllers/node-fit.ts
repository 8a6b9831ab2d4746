// Selects the node for a pod. No I/O.
//
// Hard rules filter the nodes (taints, selectors, affinity, DoNotSchedule). The rest is ranked by spreading, then by
// preferred pod affinity, then by the number of pods.
import type { Affinity, Node, NodeSelectorTerm, Pod, Taint, Toleration } from "kubernetes-types/core/v1.js";
import type { LabelSelector } from "kubernetes-types/meta/v1.js";
import { selectorMatches } from "../kinds/label-selectors.ts";
import { isFinished } from "./pod-state.ts";

export type Fit =
  | { readonly kind: "node"; readonly name: string }
  | { readonly kind: "none"; readonly message: string };

/** The pods that already have a node. */
export interface Placement {
  podsMatching(selector: LabelSelector | undefined, namespace: string): readonly Pod[];
  countOn(node: string): number;
}

export function findNode(pod: Pod, nodes: readonly Node[], placement: Placement): Fit {
  const refusals = new Map<string, number>();
  const possible = nodes.filter((node) => {
    const why = refusal(pod, node);
    if (why !== undefined) refusals.set(why, (refusals.get(why) ?? 0) + 1);
    return why === undefined;
  });
  const spreads = spreadsOf(pod, possible, placement);
  const allowed = possible.filter((node) => spreads.every((spread) => keepsSkew(spread, node)));
  if (possible.length > allowed.length)
    refusals.set("node(s) didn't match pod topology spread constraints", possible.length - allowed.length);
  const preferred = preferredDomains(pod, nodes, placement);
  const [best] = allowed
    .map((node) => ({
      name: nameOf(node),
      cost: [
        spreads.reduce((sum, { key, counts }) => sum + (counts.get(domainOf(node, key)) ?? 0), 0),
        -preferred.reduce(
          (sum, { key, weight, domains }) => sum + (domains.has(domainOf(node, key)) ? weight : 0),
          0,
        ),
        placement.countOn(nameOf(node)),
      ],
    }))
    .sort((left, right) => compare(left.cost, right.cost) || (left.name < right.name ? -1 : 1));
  return best === undefined
    ? { kind: "none", message: refusalText(nodes.length, refusals) }
    : { kind: "node", name: best.name };
}

function domainOf({ metadata }: Node, topologyKey: string): string {
  return metadata?.labels?.[topologyKey] ?? "";
}

function nameOf({ metadata }: Node): string {
  return metadata?.name ?? "";
}

function compare(left: readonly number[], right: readonly number[]): number {
  const index = left.findIndex((value, at) => value !== right[at]);
  return index < 0 ? 0 : (left[index] ?? 0) - (right[index] ?? 0);
}

function refusal(pod: Pod, node: Node): string | undefined {
  if (node.spec?.unschedulable === true) return "node(s) were unschedulable";
  const taint = (node.spec?.taints ?? []).find(
    ({ effect, ...rest }) =>
      effect !== "PreferNoSchedule" && !isTolerated({ effect, ...rest }, pod.spec?.tolerations),
  );
  if (taint !== undefined)
    return `node(s) had untolerated taint(s) {${taint.key}${taint.value ? `: ${taint.value}` : ""}}`;
  const labels = node.metadata?.labels ?? {};
  const isSelected =
    Object.entries(pod.spec?.nodeSelector ?? {}).every(([key, value]) => labels[key] === value) &&
    matchesAffinity(pod.spec?.affinity, node);
  return isSelected ? undefined : "node(s) didn't match Pod's node affinity/selector";
}

export function isTolerated(taint: Taint, tolerations: readonly Toleration[] = []): boolean {
  return tolerations.some((toleration) => tolerates(toleration, taint));
}

export function tolerates(
  { key, operator = "Equal", value = "", effect }: Toleration,
  taint: Taint,
): boolean {
  if (effect && effect !== taint.effect) return false;
  if (key && key !== taint.key) return false;
  return operator === "Exists" || (Boolean(key) && value === (taint.value ?? ""));
}

function matchesAffinity(affinity: Affinity | undefined, node: Node): boolean {
  const terms =
    affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  return terms.length === 0 || terms.some((term) => matchesTerm(term, node));
}

function matchesTerm({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, node: Node): boolean {
  const isLabelled = matchExpressions.every(({ key, operator, values = [] }) => {
    const label = node.metadata?.labels?.[key];
    if (operator === "Gt") return Number(label) > Number(values[0]);
    if (operator === "Lt") return Number(label) < Number(values[0]);
    return selectorMatches({ matchExpressions: [{ key, operator, values }] }, node.metadata?.labels);
  });
  return isLabelled && matchFields.every(({ values = [] }) => values.includes(nameOf(node)));
}

interface Spread {
  readonly key: string;
  readonly maxSkew: number;
  readonly isHard: boolean;
  /** The pods that the constraint counts, by topology domain. */
  readonly counts: ReadonlyMap<string, number>;
}

function spreadsOf(pod: Pod, possible: readonly Node[], placement: Placement): Spread[] {
  return (pod.spec?.topologySpreadConstraints ?? []).map((constraint) => {
    const { topologyKey: key, maxSkew, whenUnsatisfiable, labelSelector } = constraint;
    const domains = new Map(possible.map((node) => [nameOf(node), domainOf(node, key)]));
    const counts = new Map<string, number>();
    for (const domain of domains.values()) if (domain !== "") counts.set(domain, 0);
    for (const other of placement.podsMatching(labelSelector, pod.metadata?.namespace ?? "")) {
      const domain = domains.get(other.spec?.nodeName ?? "");
      if (domain && isLasting(other)) counts.set(domain, (counts.get(domain) ?? 0) + 1);
    }
    return { key, maxSkew, isHard: whenUnsatisfiable === "DoNotSchedule", counts };
  });
}

function isLasting(pod: Pod): boolean {
  return !isFinished(pod) && pod.metadata?.deletionTimestamp === undefined;
}

function keepsSkew({ key, maxSkew, isHard, counts }: Spread, node: Node): boolean {
  const count = counts.get(domainOf(node, key));
  return !isHard || (count !== undefined && count + 1 - Math.min(...counts.values()) <= maxSkew);
}

/** The pods that this one prefers to run near, by domain. */
function preferredDomains(
  pod: Pod,
  nodes: readonly Node[],
  placement: Placement,
): { readonly key: string; readonly weight: number; readonly domains: ReadonlySet<string> }[] {
  const terms = pod.spec?.affinity?.podAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  return terms.map(({ weight, podAffinityTerm }) => {
    const { topologyKey: key, labelSelector, namespaces = [pod.metadata?.namespace ?? ""] } = podAffinityTerm;
    const byName = new Map(nodes.map((node) => [nameOf(node), domainOf(node, key)]));
    const preferred = namespaces
      .flatMap((namespace) => placement.podsMatching(labelSelector, namespace))
      .filter(isLasting);
    const domains = new Set(preferred.map((other) => byName.get(other.spec?.nodeName ?? "") ?? ""));
    domains.delete("");
    return { key, weight, domains };
  });
}

function refusalText(nodes: number, refusals: ReadonlyMap<string, number>): string {
  const reasons = [...refusals].map(([why, count]) => `${count} ${why}`).sort();
  const tail = reasons.length === 0 ? "" : `: ${reasons.join(", ")}`;
  return nodes === 0 ? "no nodes available to schedule pods" : `0/${nodes} nodes are available${tail}.`;
}
