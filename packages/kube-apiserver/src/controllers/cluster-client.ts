// The API client of the controllers, on top of the same handler that other clients use. An error status is thrown as a
// StatusError.
import type { ApiHandler } from "../handler.ts";
import type { ApiRequest, WholeResponse } from "../request.ts";
import { apiVersionOf } from "../resource.ts";
import { StatusError } from "../status-error.ts";
import type { KubeObject, KubeStatus, ObjectRef, ResourceKind } from "../types.ts";

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
  private readonly handler: ApiHandler;
  private readonly fieldManager: string;

  constructor(handler: ApiHandler, fieldManager: string) {
    this.handler = handler;
    this.fieldManager = fieldManager;
  }

  async get<T extends KubeObject>(
    kind: ResourceKind<T>,
    ref: ObjectRef,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    const response = await this.send({ method: "GET", path: pathOf(kind, ref) }, signal);
    if (response.status === 404) return undefined;
    return accepted(response) as T;
  }

  async list<T extends KubeObject>(
    kind: ResourceKind<T>,
    namespace: string | undefined,
    signal: AbortSignal,
  ): Promise<ListAnswer<T>> {
    const path = collectionPath(kind, namespace);
    const list = accepted(await this.send({ method: "GET", path }, signal)) as {
      readonly items?: readonly T[];
      readonly metadata?: { readonly resourceVersion?: string };
    };
    return { items: list.items ?? [], resourceVersion: list.metadata?.resourceVersion ?? "" };
  }

  async watch(
    kind: ResourceKind,
    resourceVersion: string,
    signal: AbortSignal,
  ): Promise<AsyncIterable<unknown>> {
    const query = { watch: "true", allowWatchBookmarks: "true", resourceVersion };
    const response = await this.handler(
      { method: "GET", path: collectionPath(kind, undefined), query },
      signal,
    );
    return response.kind === "stream" ? response.values : refuse(response);
  }

  create<T extends KubeObject>(kind: ResourceKind<T>, object: T, signal: AbortSignal): Promise<T> {
    const path = collectionPath(kind, object.metadata?.namespace);
    return this.write({ method: "POST", path, body: typed(kind, object) }, signal);
  }

  /** For subresources of one object, such as a pod's binding. */
  async post(
    kind: ResourceKind,
    ref: ObjectRef,
    subresource: string,
    body: KubeObject,
    signal: AbortSignal,
  ): Promise<void> {
    await this.write({ method: "POST", path: `${pathOf(kind, ref)}/${subresource}`, body }, signal);
  }

  /** Fails with a conflict if the object has changed since it was read. */
  replace<T extends KubeObject>(
    kind: ResourceKind<T>,
    object: T,
    subresource: "" | "status" | "finalize",
    signal: AbortSignal,
  ): Promise<T> {
    const path = pathOf(kind, refOf(object)) + (subresource === "" ? "" : `/${subresource}`);
    return this.write({ method: "PUT", path, body: typed(kind, object) }, signal);
  }

  /** Succeeds also if the object is already gone or was replaced by another. */
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
    const response = await this.send({ ...request, contentType: "application/json" }, signal);
    if (response.status !== 404 && response.status !== 409) accepted(response);
  }

  private async send(request: ApiRequest, signal: AbortSignal): Promise<WholeResponse> {
    const response = await this.handler(request, signal);
    if (response.kind === "whole") return response;
    response.close();
    throw new Error(`${request.path} returned a stream`);
  }

  private async write<T>(request: ApiRequest, signal: AbortSignal): Promise<T> {
    const query = { fieldManager: this.fieldManager };
    const response = await this.send({ contentType: "application/json", ...request, query }, signal);
    return accepted(response) as T;
  }
}

export function refOf({ metadata }: KubeObject): ObjectRef {
  const { name = "", namespace } = metadata ?? {};
  return namespace === undefined ? { name } : { name, namespace };
}

/** Adds the kind, which list items do not have. */
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

function accepted(response: WholeResponse): unknown {
  return response.status < 300 ? response.body : refuse(response);
}

function refuse({ status, body }: WholeResponse): never {
  const refusal = body as Partial<KubeStatus> | undefined;
  const message = refusal?.message ?? `the API server returned status ${status}`;
  throw new StatusError(status, refusal?.reason ?? "", message, refusal?.details);
}
