// Parses a message of the control plane to a trusted RouteSpec, or to the list of its problems.
import {
  type ApplyRoute,
  type DeleteRoute,
  ApplyRoute_Expose as Expose,
} from "../../gen/ctrl/v1/route_pb.ts";
import { collectProblems, type ParsedMessage, quote, type Refuse } from "../../model/field-problem.ts";
import { parseHostnames } from "../../model/hostnames.ts";
import type { KeptOrder } from "../../model/kept-order.ts";
import { parseAmount, parseId, parseName } from "../../model/message-fields.ts";
import {
  isDns1123Label,
  nextServiceSuffix as nextSuffix,
  type OwnNamespaces,
  refusedWorkloadNamespace,
} from "../../model/names.ts";

export interface RouteSpec extends RouteRef {
  readonly workspaceId: string;
  readonly projectId: string;
  readonly environmentId: string;
  readonly routeId: string;
  /** The backend that the Service leads to; undefined if it leads nowhere. */
  readonly target: Backend | undefined;
  readonly backends: readonly Backend[];
  /** Gets a part of the requests by hostname; undefined if the target gets all. */
  readonly next: NextBackend | undefined;
  /** Who may reach the backends, besides sentinels. */
  readonly expose: "nobody" | "environment" | "cluster" | "gateway";
  /** Of requests through the Gateway; empty without one. */
  readonly hostnames: readonly string[];
  /** Absent if it came from the control plane's stream. */
  readonly kept?: KeptOrder;
}

export interface RouteRef {
  readonly namespace: string;
  readonly name: string;
}

export interface Backend {
  readonly deploymentId: string;
  readonly port: number;
}

export interface NextBackend extends Backend {
  /** From 1 to 99. */
  readonly percent: number;
}

/** A release that starts, the current one, and those that drain. */
const backendsMax = 100;

const exposeWords: Readonly<Record<Expose, RouteSpec["expose"]>> = {
  [Expose.UNSPECIFIED]: "nobody",
  [Expose.ENVIRONMENT]: "environment",
  [Expose.CLUSTER]: "cluster",
  [Expose.GATEWAY]: "gateway",
};

export function parseApplyRoute(message: ApplyRoute, rules: OwnNamespaces): ParsedMessage<RouteSpec> {
  return collectProblems((refuse) => {
    const backends = parseBackends(message, refuse);
    const ref = parseRef(message, rules, refuse);
    const target = parseTarget(message, backends, refuse);
    const expose = parseExpose(message.expose, refuse);
    return {
      ...ref,
      routeId: parseId("route_id", message.routeId, refuse),
      workspaceId: parseId("workspace_id", message.workspaceId, refuse),
      projectId: parseId("project_id", message.projectId, refuse),
      environmentId: parseId("environment_id", message.environmentId, refuse),
      target,
      next: parseNext(message, ref, target, refuse),
      backends,
      expose,
      hostnames: parseOwnHostnames(message, expose, refuse),
    };
  });
}

/** The rules for names also apply to deletions. */
export function parseDeleteRoute(message: DeleteRoute, rules: OwnNamespaces): ParsedMessage<RouteRef> {
  return collectProblems((refuse) => parseRef(message, rules, refuse));
}

function parseRef(
  { k8sNamespace: namespace, k8sName: name }: Pick<ApplyRoute, "k8sNamespace" | "k8sName">,
  rules: OwnNamespaces,
  refuse: Refuse,
): RouteRef {
  if (namespace === "") refuse("k8s_namespace", "is required");
  else if (!isDns1123Label(namespace)) {
    refuse("k8s_namespace", `must be a DNS label of at most 63 characters, but is ${quote(namespace)}`);
  } else {
    const reason = refusedWorkloadNamespace(namespace, rules);
    if (reason !== undefined) refuse("k8s_namespace", `${quote(namespace)} ${reason}`);
  }
  return { namespace, name: parseName("k8s_name", name, 63, refuse) };
}

function parseBackends({ backends }: ApplyRoute, refuse: Refuse): readonly Backend[] {
  if (backends.length > backendsMax) {
    refuse("backends", `must be at most ${backendsMax}, but are ${backends.length}`);
  }
  const seen = new Set<string>();
  return backends.map(({ deploymentId, port }, index) => {
    const path = `backends[${index}]`;
    if (seen.has(deploymentId))
      refuse(`${path}.deployment_id`, `${quote(deploymentId)} is already a backend`);
    seen.add(deploymentId);
    return {
      deploymentId: parseId(`${path}.deployment_id`, deploymentId, refuse),
      port: parseAmount(`${path}.port`, port, 1, 65_535, refuse),
    };
  });
}

function parseTarget(
  { deploymentId }: ApplyRoute,
  backends: readonly Backend[],
  refuse: Refuse,
): Backend | undefined {
  const target = backends.find((each) => each.deploymentId === deploymentId);
  if (target === undefined && deploymentId !== "") {
    refuse("deployment_id", `${quote(deploymentId)} is not one of the backends`);
  }
  return target;
}

function parseNext(
  { backends, hostnames }: ApplyRoute,
  { name }: RouteRef,
  target: Backend | undefined,
  refuse: Refuse,
): NextBackend | undefined {
  const [next, ...others] = backends.filter(({ percent }) => percent > 0);
  if (next === undefined) return undefined;
  const path = `backends[${backends.indexOf(next)}].percent`;
  if (others.length > 0) refuse("backends", "cannot have more than one with a percent");
  if (hostnames.length === 0) refuse(path, "is only for a route with hostnames");
  if (target === undefined || next.deploymentId === target.deploymentId)
    refuse(path, "is only for a backend beside the one that the route leads to");
  if (name.length > 63 - nextSuffix.length)
    refuse(
      "k8s_name",
      `must be at most ${63 - nextSuffix.length} characters, because a Service is named after it`,
    );
  const { deploymentId, port } = next;
  return { deploymentId, port, percent: parseAmount(path, next.percent, 1, 99, refuse) };
}

function parseOwnHostnames(
  { hostnames }: ApplyRoute,
  expose: RouteSpec["expose"],
  refuse: Refuse,
): readonly string[] {
  if (expose !== "gateway" && hostnames.length > 0)
    refuse("hostnames", "is only for what the gateway exposes");
  return parseHostnames("hostnames", hostnames, refuse);
}

function parseExpose(expose: Expose, refuse: Refuse): RouteSpec["expose"] {
  // A newer control plane may know values that this agent cannot honour: it must not open more than was asked for.
  const word = (exposeWords as Partial<Record<number, RouteSpec["expose"]>>)[expose];
  if (word === undefined) refuse("expose", `is ${expose}, which this version of krane does not know`);
  return word ?? "nobody";
}
