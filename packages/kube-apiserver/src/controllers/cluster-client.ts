// The API as controllers use it: whole objects in and out, the same way in as everybody else's. A refusal is
// thrown as a StatusError.
import type { ApiHandler } from "../handler.ts";
import type { ApiRequest, WholeAnswer } from "../request.ts";
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
    const answer = await this.send({ method: "GET", path: pathOf(kind, ref) }, signal);
    if (answer.status === 404) return undefined;
    return accepted(answer) as T;
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
    const answer = await this.handler(
      { method: "GET", path: collectionPath(kind, undefined), query },
      signal,
    );
    return answer.kind === "stream" ? answer.values : refuse(answer);
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
    const answer = await this.send({ ...request, contentType: "application/json" }, signal);
    if (answer.status !== 404 && answer.status !== 409) accepted(answer);
  }

  private async send(request: ApiRequest, signal: AbortSignal): Promise<WholeAnswer> {
    const answer = await this.handler(request, signal);
    if (answer.kind === "whole") return answer;
    answer.close();
    throw new Error(`${request.path} answered with a stream`);
  }

  private async write<T>(request: ApiRequest, signal: AbortSignal): Promise<T> {
    const query = { fieldManager: this.fieldManager };
    const answer = await this.send({ contentType: "application/json", ...request, query }, signal);
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

function accepted(answer: WholeAnswer): unknown {
  return answer.status < 300 ? answer.body : refuse(answer);
}

function refuse({ status, body }: WholeAnswer): never {
  const refusal = body as Partial<KubeStatus> | undefined;
  const message = refusal?.message ?? `the API server answered ${status}`;
  throw new StatusError(status, refusal?.reason ?? "", message, refusal?.details);
}
