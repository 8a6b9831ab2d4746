// A cluster in which everything is as an agent has applied it, with two running pods for each deployment. Objects are made
// when a watch begins, and only those that are changed later are kept, so that the memory and CPU of a process with an
// agent in it are the agent's.
import { createApiServer } from "@krane/kube-apiserver";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { ciliumDefinition } from "../../src/dev/cilium-definition.ts";
import { createInProcessTransport } from "../../src/dev/in-process-transport.ts";
import { desiredIngressPolicy } from "../../src/kinds/deployment/ingress-policy.ts";
import { desiredReplicaSet } from "../../src/kinds/deployment/pod-template.ts";
import { type DeploymentSpec, parseApplyDeployment } from "../../src/kinds/deployment/spec.ts";
import type {
  ApplyOptions,
  ApplyResult,
  KubeApi,
  ListPage,
  WatchEvent,
  WatchOptions,
} from "../../src/kube/api.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import {
  ciliumNetworkPolicies,
  customResourceDefinitions,
  namespaces,
  pods,
  replicaSets,
} from "../../src/kube/resources.ts";
import type { KubeObject, ManagedFieldsEntry, ObjectRef, ResourceKind } from "../../src/kube/types.ts";
import { describeProblems } from "../../src/model/field-problem.ts";
import { annotationKeys, fieldManager } from "../../src/model/labels.ts";
import { type Seal, type SealedIds, sealedIdsOf } from "../../src/model/seal.ts";
import { eventually } from "../../test/support/eventually.ts";
import { type SampleSet, sampleDeployment } from "../deployments/sample-set.ts";
import { runningPods } from "../scale/running-pods.ts";

const replicas = 2;
const never = new AbortController().signal;

export class FilledCluster implements KubeApi {
  private readonly set: SampleSet;
  private readonly seal: Seal;
  private readonly fields: ReadonlyMap<string, readonly ManagedFieldsEntry[]>;
  private readonly changed = new Map<string, ReplicaSet>();
  private version = 1_000_000;
  private tell: (event: WatchEvent<KubeObject>) => void = () => undefined;
  writes = 0;

  private constructor(set: SampleSet, seal: Seal, fields: FilledCluster["fields"]) {
    this.set = set;
    this.seal = seal;
    this.fields = fields;
  }

  /** Only the embedded server knows what it records of an apply. */
  static async create(set: SampleSet, seal: Seal): Promise<FilledCluster> {
    const server = createApiServer();
    const api = createKubeApi(createInProcessTransport(server));
    await api.create(customResourceDefinitions, ciliumDefinition, {}, never);
    const cluster = new FilledCluster(set, seal, new Map());
    const fields = new Map<string, readonly ManagedFieldsEntry[]>();
    const { namespace } = specAt(set, 0);
    await api.create(namespaces, { metadata: { name: namespace } }, {}, never);
    for (const [kind, object] of [
      [replicaSets, cluster.replicaSet(0)],
      [ciliumNetworkPolicies, cluster.policy(0)],
    ] as const) {
      const { uid: _, resourceVersion: __, managedFields: ___, ...metadata } = object.metadata ?? {};
      const options = { fieldManager, force: false };
      // A new definition is served a moment later.
      const applied = await eventually(`${kind.kind} is served`, () =>
        api.apply(kind as ResourceKind, { ...object, metadata }, options, never),
      );
      fields.set(kind.kind, applied.object.metadata?.managedFields ?? []);
    }
    server.stop();
    return new FilledCluster(set, seal, fields);
  }

  async get<T extends KubeObject>(kind: ResourceKind<T>, ref: ObjectRef): Promise<T | undefined> {
    if (kind.kind === namespaces.kind) return { metadata: { name: ref.name } } as T;
    if (kind.kind !== replicaSets.kind) return undefined;
    const index = Number(ref.name.slice(ref.name.lastIndexOf("-") + 1));
    return (this.changed.get(ref.name) ?? this.replicaSet(index)) as KubeObject as T;
  }

  async list<T extends KubeObject>(): Promise<ListPage<T>> {
    return { items: [], resourceVersion: String(this.version) };
  }

  async *watch<T extends KubeObject>(
    kind: ResourceKind<T>,
    { onOpen }: WatchOptions,
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent<T>> {
    onOpen?.();
    for (const object of this.objectsOf(kind)) yield { type: "ADDED", object: object as T };
    yield { type: "BOOKMARK", resourceVersion: String(this.version), initialEventsEnd: true };
    const waiting: WatchEvent<KubeObject>[] = [];
    let wake: () => void = () => undefined;
    if (kind.kind === replicaSets.kind)
      this.tell = (event) => {
        waiting.push(event);
        wake();
      };
    signal.addEventListener("abort", () => wake());
    while (!signal.aborted) {
      const event = waiting.shift();
      if (event !== undefined) yield event as WatchEvent<T>;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  }

  async apply<T extends KubeObject>(
    kind: ResourceKind<T>,
    manifest: T,
    _options: ApplyOptions,
  ): Promise<ApplyResult<T>> {
    this.writes += 1;
    this.version += 1;
    const live = await this.get(kind, { name: manifest.metadata?.name ?? "" });
    const metadata = { ...live?.metadata, ...manifest.metadata, resourceVersion: String(this.version) };
    const object = { ...manifest, metadata };
    if (kind.kind === replicaSets.kind) {
      this.changed.set(metadata.name ?? "", object as KubeObject as ReplicaSet);
      this.tell({ type: "MODIFIED", object });
    }
    return { kind: "applied", object };
  }

  async create<T extends KubeObject>(_kind: ResourceKind<T>, object: T): Promise<T> {
    return object;
  }

  patch(): Promise<never> {
    return Promise.reject(new Error("nothing is patched here"));
  }

  delete(): Promise<never> {
    return Promise.reject(new Error("nothing is deleted here"));
  }

  private *objectsOf(kind: ResourceKind): IterableIterator<KubeObject> {
    const { deployments, namespaces: homes } = this.set;
    if (kind.kind === ciliumNetworkPolicies.kind)
      for (let home = 0; home < Math.min(homes, deployments); home++) yield this.policy(home);
    if (kind.kind !== replicaSets.kind && kind.kind !== pods.kind) return;
    for (let index = 0; index < deployments; index++) {
      const replicaSet = this.replicaSet(index);
      if (kind.kind === replicaSets.kind) yield replicaSet;
      else yield* runningPods(replicaSet, index * replicas).map(versioned);
    }
  }

  private replicaSet(index: number): ReplicaSet {
    const spec = specAt(this.set, index);
    const settings = { secrets: { audience: "krane" } };
    return this.live(replicaSets, desiredReplicaSet(spec, settings), sealedIdsOf(spec, spec.deploymentId));
  }

  private policy(home: number): KubeObject {
    const spec = specAt(this.set, home);
    const { workspaceId, environmentId } = spec;
    const manifest = desiredIngressPolicy(spec, [spec.port]);
    return this.live(ciliumNetworkPolicies, manifest, { workspaceId, environmentId });
  }

  private live<T extends KubeObject>(kind: ResourceKind, manifest: T, ids: SealedIds): T {
    const { namespace, name = "" } = manifest.metadata ?? {};
    const text = this.seal.write({ kind, namespace, name }, ids);
    return versioned({
      ...manifest,
      metadata: {
        ...manifest.metadata,
        uid: `uid of ${kind.kind} ${namespace}/${name}`,
        generation: 1,
        creationTimestamp: "2026-01-02T03:04:05Z",
        annotations: { ...manifest.metadata?.annotations, [annotationKeys.seal]: text },
        managedFields: [...(this.fields.get(kind.kind) ?? [])],
      },
    });
  }
}

function versioned<T extends KubeObject>(object: T): T {
  return { ...object, metadata: { ...object.metadata, resourceVersion: "1000" } };
}

function specAt(set: SampleSet, index: number): DeploymentSpec {
  const parsed = parseApplyDeployment(sampleDeployment(set, index, { replicas }), { registries: [] });
  if (parsed.kind === "invalid") throw new Error(describeProblems(parsed.problems));
  return parsed.spec;
}
