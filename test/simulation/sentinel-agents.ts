// Sentinel controllers in a simulated region, and what a test wants to know of the five objects.
import type { Deployment } from "kubernetes-types/apps/v1.js";
import type { KindControllerOptions } from "../../src/kinds/kind.ts";
import { type ControllerOf, kinds } from "../../src/kinds/kinds.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import {
  appsDeployments,
  ciliumNetworkPolicies,
  podDisruptionBudgets,
  services,
} from "../../src/kube/resources.ts";
import type { KubeObject, ObjectRef, ResourceKind } from "../../src/kube/types.ts";
import { applySentinel } from "../support/sentinel-messages.ts";
import { defaultOptions, region, type SimulatedAgent, type SimulatedRegion } from "./simulated-region.ts";

const createSentinelController = await kinds.sentinel.loadController();

export type SentinelAgent = SimulatedAgent<ControllerOf<"sentinel">>;

export interface SentinelAgentOptions extends Partial<KindControllerOptions> {
  /** Puts something between the controller and the cluster. */
  readonly wrapApi?: (api: KubeApi) => KubeApi;
}

export function createSentinelAgent(
  world: SimulatedRegion,
  options: SentinelAgentOptions = {},
): SentinelAgent {
  const { wrapApi = (api) => api, ...overrides } = options;
  return world.createAgentOf("sentinels", (deps) =>
    createSentinelController({ ...defaultOptions, ...overrides }, { ...deps, api: wrapApi(deps.api) }),
  );
}

/** Starts an agent and waits until its watches are open. */
export async function startSentinelAgent(
  world: SimulatedRegion,
  options: SentinelAgentOptions = {},
): Promise<SentinelAgent> {
  const agent = createSentinelAgent(world, options);
  await world.resolved(agent.controller.start());
  return agent;
}

/** Neither may help where the watch has to be enough. */
export const watchOnly = { resyncMs: 0, replayMs: 0 } as const;

export function setSentinel(
  world: SimulatedRegion,
  index: number,
  overrides: Parameters<typeof applySentinel>[0] = {},
): Promise<bigint> {
  const sentinel = applySentinel({ k8sName: `gate-${index}`, sentinelId: `se_${index}`, ...overrides });
  return world.plane.admin.setSentinel(region, sentinel);
}

/** Everything about the world at rest: nothing waits, and nothing is on its way. */
export function isSettled({ controller }: SentinelAgent, version: bigint): boolean {
  return controller.status().stream?.cursor === version;
}

interface PartName {
  readonly kind: ResourceKind;
  readonly ref: ObjectRef;
}

/** In the order of applying. */
export function partsOf(index: number): readonly PartName[] {
  const namespace = "sentinel";
  const name = `gate-${index}`;
  const gossip = `${name}-gossip-lan`;
  return [
    { kind: appsDeployments, ref: { namespace, name } },
    { kind: services, ref: { namespace, name } },
    { kind: podDisruptionBudgets, ref: { namespace, name } },
    { kind: services, ref: { namespace, name: gossip } },
    { kind: ciliumNetworkPolicies, ref: { namespace, name: gossip } },
  ];
}

const never = new AbortController().signal;

/** Every object of every sentinel, as `Kind name`, whoever made it. */
export async function objectNames(world: SimulatedRegion, withPolicies = true): Promise<readonly string[]> {
  const kinds = [appsDeployments, services, podDisruptionBudgets] as const;
  const lists: (readonly KubeObject[])[] = [];
  for (const kind of withPolicies ? [...kinds, ciliumNetworkPolicies] : kinds)
    lists.push((await world.list<KubeObject>(kind)).map((object) => ({ ...object, kind: kind.kind })));
  return lists
    .flat()
    .filter(({ metadata }) => metadata?.namespace === "sentinel")
    .map(({ kind, metadata }) => `${kind} ${metadata?.name}`)
    .sort();
}

export function namesOf(index: number): readonly string[] {
  return partsOf(index)
    .map(({ kind, ref }) => `${kind.kind} ${ref.name}`)
    .sort();
}

export async function liveDeployment(world: SimulatedRegion, index: number): Promise<Deployment | undefined> {
  return world.api.get(appsDeployments, { namespace: "sentinel", name: `gate-${index}` }, {}, never);
}

/** What is the same in every run that ends in the same state: no uids, versions or times. */
export async function contentOf(world: SimulatedRegion, index: number): Promise<readonly unknown[]> {
  const uid = (await liveDeployment(world, index))?.metadata?.uid;
  const contents: unknown[] = [];
  for (const { kind, ref } of partsOf(index)) {
    const object = await world.api.get(kind, ref, {}, never);
    contents.push(object && withoutIdentity(object, uid));
  }
  return contents;
}

function withoutIdentity(object: KubeObject, deploymentUid: string | undefined): unknown {
  const { labels, annotations, ownerReferences, finalizers } = object.metadata ?? {};
  const { metadata: _, status: __, ...rest } = object as KubeObject & { readonly status?: unknown };
  return {
    // Each Service gets a new address.
    ...JSON.parse(JSON.stringify(rest, (_key, value) => (isAddress(value) ? "address" : value))),
    labels,
    // The hash of a manifest that names an owner is another one with each owner.
    annotations: Object.keys(annotations ?? {}),
    finalizers,
    owners: ownerReferences?.map((owner) => ({ ...owner, uid: owner.uid === deploymentUid })),
  };
}

function isAddress(value: unknown): boolean {
  return typeof value === "string" && /^\d+\.\d+\.\d+\.\d+$/.test(value);
}
