// What a set of CiliumNetworkPolicies, of one namespace or of the cluster, admits between two pods, by Cilium's own
// rules for selectors, namespaces and default deny. Small on purpose: whatever it does not know (requests, names,
// services) it refuses to judge, because a policy that is half understood would be declared safe.
import type { KubeObject } from "../../src/kube/types.ts";

/** A pod as Cilium knows it: by its namespace and its labels. */
export interface Endpoint {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
}

export interface Connection {
  readonly from: Endpoint;
  readonly to: Endpoint;
  readonly port: number;
  readonly protocol: "TCP" | "UDP" | "SCTP";
}

type Json = Readonly<Record<string, unknown>>;

interface Direction {
  readonly allow: string;
  readonly deny: string;
  readonly peers: string;
  readonly entities: string;
  /** A network is never a pod of the cluster, whatever address that has. */
  readonly networks: readonly string[];
  readonly subject: "from" | "to";
}

const ingress: Direction = {
  allow: "ingress",
  deny: "ingressDeny",
  peers: "fromEndpoints",
  entities: "fromEntities",
  networks: ["fromCIDR", "fromCIDRSet"],
  subject: "to",
};
const egress: Direction = {
  allow: "egress",
  deny: "egressDeny",
  peers: "toEndpoints",
  entities: "toEntities",
  networks: ["toCIDR", "toCIDRSet"],
  subject: "from",
};
/** Whether an ordinary pod is one of them. */
const entities = new Map([
  ["all", true],
  ["cluster", true],
  ["host", false],
  ["ingress", false],
  ["kube-apiserver", false],
  ["remote-node", false],
  ["world", false],
]);
const namespaceKey = "io.kubernetes.pod.namespace";

/** Both ends have a say: what leaves one pod must also be let into the other. */
export function admits(policies: readonly KubeObject[], connection: Connection): boolean {
  const rules = policies.flatMap(rulesOf);
  return [ingress, egress].every((direction) => passes(rules, direction, connection));
}

interface Rule {
  /** Absent: of the whole cluster. */
  readonly namespace: string | undefined;
  readonly body: Json;
}

function rulesOf(policy: KubeObject): readonly Rule[] {
  const { metadata, spec, specs } = policy as KubeObject & { spec?: Json; specs?: readonly Json[] };
  const namespace = metadata?.namespace;
  const isClusterwide = policy.kind === "CiliumClusterwideNetworkPolicy";
  if ((namespace === undefined) !== isClusterwide)
    throw new Error("a policy is in a namespace, or clusterwide");
  return [...(spec === undefined ? [] : [spec]), ...(specs ?? [])].map((body) => {
    const known = ["endpointSelector", "description", "ingress", "ingressDeny", "egress", "egressDeny"];
    refuseUnknown(body, known);
    return { namespace, body };
  });
}

/** A pod that no rule selects for this direction is open; one that is selected gets what is allowed. */
function passes(rules: readonly Rule[], direction: Direction, connection: Connection): boolean {
  const subject = connection[direction.subject];
  const selecting = rules.filter(({ namespace, body }) => {
    // Whatever the selector says of namespaces, it selects in that of the policy.
    const isThere = namespace === undefined || subject.namespace === namespace;
    return isThere && matches(asJson(body["endpointSelector"]), subject);
  });
  const sectionsOf = (name: string) =>
    selecting.flatMap(({ namespace, body }) =>
      asList(body[name]).map((section) => ({ namespace, body: section })),
    );
  const allowing = sectionsOf(direction.allow);
  const denying = sectionsOf(direction.deny);
  if (denying.some((section) => covers(section, direction, connection))) return false;
  return (
    (allowing.length === 0 && denying.length === 0) ||
    allowing.some((section) => covers(section, direction, connection))
  );
}

function covers(section: Rule, direction: Direction, connection: Connection): boolean {
  const { namespace, body } = section;
  const { networks } = direction;
  refuseUnknown(body, [direction.peers, direction.entities, ...networks, "toPorts"]);
  const peers = body[direction.peers];
  const named = body[direction.entities];
  const ports = body["toPorts"];
  const isOpen = [peers, named, ...networks.map((name) => body[name])].every((value) => value === undefined);
  // Nothing at all is named: it only switches default deny on.
  if (isOpen && ports === undefined) return false;
  const peer = connection[direction.subject === "to" ? "from" : "to"];
  const isPeer =
    isOpen ||
    asList(peers).some((selector) => matches(inNamespace(selector, namespace), peer)) ||
    (Array.isArray(named) && named.some((entity) => isPod(String(entity))));
  return isPeer && (ports === undefined || asList(ports).some((rule) => coversPort(rule, connection)));
}

function isPod(entity: string): boolean {
  const answer = entities.get(entity);
  if (answer === undefined) throw new Error(`entity ${entity} is not understood`);
  return answer;
}

function coversPort(rule: Json, { port, protocol }: Connection): boolean {
  refuseUnknown(rule, ["ports"]);
  const ports = asList(rule["ports"]);
  return (
    ports.length === 0 ||
    ports.some((wanted) => {
      refuseUnknown(wanted, ["port", "endPort", "protocol"]);
      const first = Number(wanted["port"]);
      if (!Number.isInteger(first)) throw new Error(`port ${String(wanted["port"])} is not a number`);
      const last = Number(wanted["endPort"] ?? first);
      const isPort = first === 0 || (port >= first && port <= last);
      return isPort && ["ANY", protocol].includes(String(wanted["protocol"] ?? "ANY"));
    })
  );
}

/** A peer is looked for in the namespace of the policy, unless its selector says something of namespaces. */
function inNamespace(selector: Json, namespace: string | undefined): Json {
  if (namespace === undefined) return selector;
  const labels = asJson(selector["matchLabels"]);
  const expressions = asList(selector["matchExpressions"]);
  const keys = [...Object.keys(labels), ...expressions.map(({ key }) => String(key))].map(plainKey);
  if (keys.includes(namespaceKey)) return selector;
  return { ...selector, matchLabels: { ...labels, [namespaceKey]: namespace } };
}

function matches(selector: Json, { namespace, labels }: Endpoint): boolean {
  refuseUnknown(selector, ["matchLabels", "matchExpressions"]);
  // A pod cannot say of itself that it is in another namespace.
  const known: Json = { ...labels, [namespaceKey]: namespace };
  return (
    Object.entries(asJson(selector["matchLabels"])).every(([key, value]) => known[plainKey(key)] === value) &&
    asList(selector["matchExpressions"]).every((expression) => meets(expression, known))
  );
}

function meets({ key, operator, values }: Json, labels: Json): boolean {
  const value = labels[plainKey(String(key))];
  const isListed = Array.isArray(values) && values.includes(value);
  switch (operator) {
    case "In":
      return isListed;
    case "NotIn":
      return !isListed;
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    default:
      throw new Error(`unknown operator ${String(operator)}`);
  }
}

/** Labels have a source in front, which is Kubernetes for all that are here. */
function plainKey(key: string): string {
  if (/^(reserved[:.]|io\.cilium\.)/.test(key)) throw new Error(`label ${key} is not understood`);
  return key.replace(/^(k8s|any):/, "");
}

function refuseUnknown(value: Json, known: readonly string[]): void {
  const unknown = Object.keys(value).filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new Error(`not understood: ${unknown.join(", ")}`);
}

function asList(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

function asJson(value: unknown): Json {
  return (value ?? {}) as Json;
}
