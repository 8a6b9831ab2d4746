// The API as controllers use it: whole objects in and out, over the same transport as
// everybody else's. A refusal is a KubeApiError with the server's status and reason.
import { KubeApiError } from "../../../kube/errors.ts";
import type { KubeRequest, KubeStream, KubeTransport } from "../../../kube/transport.ts";
import type { KubeObject, KubeStatus, ObjectRef, ResourceKind } from "../../../kube/types.ts";
import { apiVersionOf } from "../resource.ts";

export interface ListAnswer<T extends KubeObject> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
}

export interface RemoveOptions {
  readonly uid?: string | undefined;
  readonly propagation?: "Background" | "Foreground" | "Orphan";
  readonly graceSeconds?: number;
}

export class ClusterClient {
  private readonly transport: KubeTransport;
  private readonly fieldManager: string;

  constructor(transport: KubeTransport, fieldManager: string) {
    this.transport = transport;
    this.fieldManager = fieldManager;
  }

  async get<T extends KubeObject>(
    kind: ResourceKind<T>,
    ref: ObjectRef,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    const answer = await this.transport.send({ method: "GET", path: pathOf(kind, ref) }, signal);
    if (answer.status === 404) return undefined;
    return accepted(answer) as T;
  }

  async list<T extends KubeObject>(
    kind: ResourceKind<T>,
    namespace: string | undefined,
    signal: AbortSignal,
  ): Promise<ListAnswer<T>> {
    const path = collectionPath(kind, namespace);
    const list = accepted(await this.transport.send({ method: "GET", path }, signal)) as {
      readonly items?: readonly T[];
      readonly metadata?: { readonly resourceVersion?: string };
    };
    return { items: list.items ?? [], resourceVersion: list.metadata?.resourceVersion ?? "" };
  }

  watch(kind: ResourceKind, resourceVersion: string, signal: AbortSignal): Promise<KubeStream> {
    const query = { watch: "true", allowWatchBookmarks: "true", resourceVersion };
    return this.transport.stream({ method: "GET", path: collectionPath(kind, undefined), query }, signal);
  }

  create<T extends KubeObject>(kind: ResourceKind<T>, object: T, signal: AbortSignal): Promise<T> {
    const path = collectionPath(kind, object.metadata?.namespace);
    return this.write({ method: "POST", path, body: typed(kind, object) }, signal);
  }

  /** For what is asked of one object: a pod's binding. */
  async post(
    kind: ResourceKind,
    ref: ObjectRef,
    subresource: string,
    body: KubeObject,
    signal: AbortSignal,
  ): Promise<void> {
    await this.write({ method: "POST", path: `${pathOf(kind, ref)}/${subresource}`, body }, signal);
  }

  /** Refused with a conflict unless the object is still the one that was read. */
  replace<T extends KubeObject>(
    kind: ResourceKind<T>,
    object: T,
    subresource: "" | "status" | "finalize",
    signal: AbortSignal,
  ): Promise<T> {
    const path = pathOf(kind, refOf(object)) + (subresource === "" ? "" : `/${subresource}`);
    return this.write({ method: "PUT", path, body: typed(kind, object) }, signal);
  }

  /** An object that is gone, or that another one took the place of, is as good as removed. */
  async remove(
    kind: ResourceKind,
    ref: ObjectRef,
    { uid, propagation, graceSeconds }: RemoveOptions,
    signal: AbortSignal,
  ): Promise<void> {
    const body = {
      kind: "DeleteOptions",
      apiVersion: "v1",
      ...(uid === undefined ? {} : { preconditions: { uid } }),
      ...(propagation === undefined ? {} : { propagationPolicy: propagation }),
      ...(graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds }),
    };
    const request = { method: "DELETE", path: pathOf(kind, ref), body } as const;
    const answer = await this.transport.send({ ...request, contentType: "application/json" }, signal);
    if (answer.status !== 404 && answer.status !== 409) accepted(answer);
  }

  private async write<T>(request: KubeRequest, signal: AbortSignal): Promise<T> {
    const query = { fieldManager: this.fieldManager };
    const answer = await this.transport.send({ contentType: "application/json", ...request, query }, signal);
    return accepted(answer) as T;
  }
}

export function refOf({ metadata }: KubeObject): ObjectRef {
  const { name = "", namespace } = metadata ?? {};
  return namespace === undefined ? { name } : { name, namespace };
}

/** Items of a list do not say what they are. */
function typed<T extends KubeObject>(kind: ResourceKind<T>, object: T): T {
  return { ...object, apiVersion: apiVersionOf(kind), kind: kind.kind };
}

function collectionPath(kind: ResourceKind, namespace: string | undefined): string {
  const root = kind.group === "" ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`;
  const inside = kind.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${root}${inside}/${kind.plural}`;
}

function pathOf(kind: ResourceKind, { namespace, name }: ObjectRef): string {
  return `${collectionPath(kind, namespace)}/${encodeURIComponent(name)}`;
}

function accepted({ status, body }: { readonly status: number; readonly body: unknown }): unknown {
  if (status < 300) return body;
  const refusal = body as KubeStatus | undefined;
  throw new KubeApiError("refused", refusal?.message ?? `the API server answered ${status}`, {
    status,
    ...(refusal?.reason === undefined ? {} : { reason: refusal.reason }),
    ...(refusal?.details?.causes === undefined ? {} : { causes: refusal.details.causes }),
  });
}
