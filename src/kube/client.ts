// Implements KubeApi on any transport: builds the requests and interprets the responses. It holds no state, never
// retries and never waits; the callers decide about that.

import { notify } from "../concurrency/notify.ts";
import type {
  ApplyOptions,
  ApplyResult,
  CreateOptions,
  DeleteOptions,
  DeleteOutcome,
  Detail,
  GetOptions,
  KubeApi,
  ListOptions,
  ListPage,
  PatchOperation,
  PatchOptions,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from "./api.ts";
import { KubeApiError, parseStatus, refusedError, withoutServerMessage } from "./errors.ts";
import type { KubeRequest, KubeResponse, KubeTransport } from "./transport.ts";
import type { KubeObject, ObjectRef, ResourceKind } from "./types.ts";

// A page of ordinary objects stays well below this. One that is larger would exhaust the memory of the process, and is
// read in smaller ones.
const listBytesMax = 64 * 2 ** 20;

export interface KubeApiOptions {
  /** Errors also repeat the server's messages about Secrets and tokens, which may quote them. For tests of servers. */
  readonly mayQuoteSecrets?: boolean;
}

export function createKubeApi(
  carrier: KubeTransport,
  { mayQuoteSecrets = false }: KubeApiOptions = {},
): KubeApi {
  const transport = mayQuoteSecrets ? carrier : redactingTransport(carrier);
  return {
    get: (kind, ref, options, signal) => getObject(transport, kind, ref, options, signal),
    list: (kind, options, signal) => listPage(transport, kind, options, signal),
    watch: (kind, options, signal) => watchEvents(transport, kind, options, signal),
    apply: (kind, manifest, options, signal) => applyObject(transport, kind, manifest, options, signal),
    patch: (kind, object, operations, options, signal) =>
      patchObject(transport, kind, object, operations, options, signal),
    delete: (kind, ref, options, signal) => deleteObject(transport, kind, ref, options, signal),
    create: (kind, object, options, signal) => createObject(transport, kind, object, options, signal),
  };
}

async function getObject<T extends KubeObject>(
  transport: KubeTransport,
  kind: ResourceKind<T>,
  ref: ObjectRef,
  options: GetOptions,
  signal: AbortSignal,
): Promise<T | undefined> {
  const answer = await transport.send(
    {
      method: "GET",
      path: objectPath(kind, ref),
      query: definedOnly({ resourceVersion: options.resourceVersion }),
      accept: acceptObject(options.detail),
    },
    signal,
  );
  if (isAbsent(answer, ref.name)) return undefined;
  return parseObject<T>(`get ${describeObject(kind, ref)}`, answer);
}

async function listPage<T extends KubeObject>(
  transport: KubeTransport,
  kind: ResourceKind<T>,
  options: ListOptions,
  signal: AbortSignal,
): Promise<ListPage<T>> {
  const answer = await transport.send(
    {
      method: "GET",
      path: collectionPath(kind, options.namespace),
      query: definedOnly({
        labelSelector: options.labelSelector,
        fieldSelector: options.fieldSelector,
        limit: options.limit?.toString(),
        continue: options.continue,
        resourceVersion: options.resourceVersion,
        resourceVersionMatch: options.resourceVersionMatch,
      }),
      accept: acceptList(options.detail),
      answerBytesMax: listBytesMax,
    },
    signal,
  );
  return parseList<T>(`list ${describeObject(kind, options)}`, answer);
}

async function applyObject<T extends KubeObject>(
  transport: KubeTransport,
  kind: ResourceKind<T>,
  manifest: T,
  options: ApplyOptions,
  signal: AbortSignal,
): Promise<ApplyResult<T>> {
  const ref = refOf(kind, manifest);
  const answer = await transport.send(
    {
      method: "PATCH",
      path: objectPath(kind, ref, options.subresource),
      query: { ...writeQuery(options), force: String(options.force) },
      contentType: applyPatch,
      accept: acceptObject(options.detail),
      body: withType(kind, manifest),
    },
    signal,
  );
  const object = parseObject<T>(`apply ${describeObject(kind, ref)}`, answer);
  return { kind: answer.status === 201 ? "created" : "applied", object };
}

async function patchObject<T extends KubeObject>(
  transport: KubeTransport,
  kind: ResourceKind<T>,
  object: T,
  operations: readonly PatchOperation[],
  options: PatchOptions,
  signal: AbortSignal,
): Promise<T> {
  const ref = refOf(kind, object);
  // Patching the resourceVersion makes it a precondition. The paths hold indexes of the object that was read, and in
  // a list that changed since, they would point at other items.
  const value = object.metadata?.resourceVersion;
  const unchanged: PatchOperation = { op: "replace", path: "/metadata/resourceVersion", value };
  const answer = await transport.send(
    {
      method: "PATCH",
      path: objectPath(kind, ref, options.subresource),
      query: writeQuery(options),
      contentType: jsonPatch,
      accept: json,
      body: [unchanged, ...operations],
    },
    signal,
  );
  return parseObject<T>(`patch ${describeObject(kind, ref)}`, answer);
}

async function deleteObject(
  transport: KubeTransport,
  kind: ResourceKind,
  ref: ObjectRef,
  options: DeleteOptions,
  signal: AbortSignal,
): Promise<DeleteOutcome> {
  const preconditions = definedOnly({ uid: options.uid, resourceVersion: options.resourceVersion });
  const answer = await transport.send(
    {
      method: "DELETE",
      path: objectPath(kind, ref),
      contentType: json,
      accept: json,
      body: {
        apiVersion: "v1",
        kind: "DeleteOptions",
        ...(Object.keys(preconditions).length > 0 && { preconditions }),
        ...(options.propagation && { propagationPolicy: options.propagation }),
        ...(options.gracePeriodSeconds !== undefined && { gracePeriodSeconds: options.gracePeriodSeconds }),
        ...(options.dryRun && { dryRun: ["All"] }),
      },
    },
    signal,
  );
  if (isAbsent(answer, ref.name)) return { kind: "absent" };
  if (answer.status >= 300) throw refusedError(`delete ${describeObject(kind, ref)}`, answer);
  return { kind: isStillPresent(answer.body) ? "deleting" : "deleted" };
}

async function createObject<T extends KubeObject>(
  transport: KubeTransport,
  kind: ResourceKind<T>,
  object: T,
  options: CreateOptions,
  signal: AbortSignal,
): Promise<T> {
  const path =
    options.subresource === undefined
      ? collectionPath(kind, namespaceOf(kind, object))
      : objectPath(kind, options.ref ?? refOf(kind, object), options.subresource);
  const answer = await transport.send(
    {
      method: "POST",
      path,
      query: writeQuery(options),
      contentType: json,
      accept: json,
      body: withType(kind, object),
    },
    signal,
  );
  return parseObject<T>(`create ${describeObject(kind, options.ref ?? object.metadata ?? {})}`, answer);
}

/**
 * Only a NotFound status for this very name counts as absence. The server also answers 404 for a kind that is not
 * installed and for a wrong path; treating those as "gone" would recreate or forget live objects.
 */
function isAbsent(answer: KubeResponse, name: string): boolean {
  const status = answer.status === 404 ? parseStatus(answer.body) : undefined;
  return status?.reason === "NotFound" && status.details?.name === name;
}

/**
 * The response to an accepted delete is a Status or, for some kinds, the object. An object that is being deleted
 * carries a deletionTimestamp; it is already gone only if its grace period is 0 and it has no finalizer.
 */
function isStillPresent(body: unknown): boolean {
  const metadata = (body as KubeObject | undefined)?.metadata;
  if (metadata?.deletionTimestamp === undefined) return false;
  return metadata.deletionGracePeriodSeconds !== 0 || (metadata.finalizers ?? []).length > 0;
}

function parseObject<T extends KubeObject>(what: string, answer: KubeResponse): T {
  if (answer.status >= 300) throw refusedError(what, answer);
  if (!isObject(answer.body)) throw new KubeApiError("malformed", `${what}: the response is not an object`);
  return answer.body as T;
}

function parseList<T extends KubeObject>(what: string, answer: KubeResponse): ListPage<T> {
  const body = parseObject<KubeObject & ListBody>(what, answer);
  const { items, metadata } = body;
  if (metadata?.resourceVersion === undefined) {
    throw new KubeApiError("malformed", `${what}: the list has no resourceVersion`);
  }
  // Go encodes a nil slice as null.
  if (items !== null && !(Array.isArray(items) && items.every(isObject))) {
    throw new KubeApiError("malformed", `${what}: the list has no items`);
  }
  return {
    items: (items ?? []) as T[],
    resourceVersion: metadata.resourceVersion,
    ...(metadata.continue ? { continue: metadata.continue } : {}),
    ...(metadata.remainingItemCount === undefined ? {} : { remainingItemCount: metadata.remainingItemCount }),
  };
}

interface ListBody {
  readonly items?: unknown;
  readonly metadata?: { readonly continue?: string; readonly remainingItemCount?: number };
}

function isObject(value: unknown): value is KubeObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function refOf(kind: ResourceKind, object: KubeObject): ObjectRef {
  const name = object.metadata?.name ?? "";
  const namespace = namespaceOf(kind, object);
  return namespace === undefined ? { name } : { name, namespace };
}

function namespaceOf(kind: ResourceKind, object: KubeObject): string | undefined {
  const namespace = object.metadata?.namespace;
  if (kind.namespaced && namespace === undefined) {
    throw new KubeApiError("invalid-name", `a ${kind.kind} needs a namespace`);
  }
  return namespace;
}

function withType<T extends KubeObject>(kind: ResourceKind<T>, object: T): T {
  const apiVersion = kind.group === "" ? kind.version : `${kind.group}/${kind.version}`;
  return { ...object, apiVersion, kind: kind.kind };
}

function writeQuery(options: WriteOptions & { readonly fieldManager?: string }): Record<string, string> {
  return definedOnly({
    fieldManager: options.fieldManager,
    dryRun: options.dryRun ? "All" : undefined,
    fieldValidation: options.fieldValidation,
  });
}

function definedOnly(values: Record<string, string | undefined>): Record<string, string> {
  const defined: Record<string, string> = {};
  for (const [name, value] of Object.entries(values)) if (value !== undefined) defined[name] = value;
  return defined;
}

const secretPath = /\/(?:secrets(?:\/[^/]+)?|tokenreviews|serviceaccounts\/[^/]+\/token)$/;

/**
 * Removes the server's error messages from responses to requests that carried a secret. A webhook may quote what it
 * refuses, and error messages go into logs, into the status and to the control plane (K7).
 */
function redactingTransport(transport: KubeTransport): KubeTransport {
  return {
    async send(request, signal) {
      const answer = await transport.send(request, signal);
      return answer.status >= 300 && carriesSecret(request) ? withoutServerMessage(answer) : answer;
    },
    stream: (request, signal) => transport.stream(request, signal),
    close: () => transport.close(),
  };
}

function carriesSecret({ method, path }: KubeRequest): boolean {
  return method !== "GET" && method !== "DELETE" && secretPath.test(path);
}

const initialEventsEndAnnotation = "k8s.io/initial-events-end";

/** Opens a watch and parses its events. An invalid event is an error, because skipping it would lose a change. */
async function* watchEvents<T extends KubeObject>(
  transport: KubeTransport,
  kind: ResourceKind<T>,
  options: WatchOptions,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  const what = `watch ${describeObject(kind, options)}`;
  const stream = await transport.stream(watchRequest(kind, options), signal);
  if (stream.refusal !== undefined) throw refusedError(what, stream.refusal);
  // If the listener threw here, the open stream would leak.
  notify(() => options.onOpen?.());
  for await (const value of stream.values) yield parseWatchEvent<T>(what, value);
}

function watchRequest(kind: ResourceKind, options: WatchOptions): KubeRequest {
  const query: Record<string, string> = { watch: "true" };
  if (options.labelSelector !== undefined) query["labelSelector"] = options.labelSelector;
  if (options.fieldSelector !== undefined) query["fieldSelector"] = options.fieldSelector;
  if (options.resourceVersion !== undefined) query["resourceVersion"] = options.resourceVersion;
  if (options.timeoutSeconds !== undefined) query["timeoutSeconds"] = String(options.timeoutSeconds);
  if (options.bookmarks === true || options.sendInitialEvents === true) query["allowWatchBookmarks"] = "true";
  if (options.sendInitialEvents === true) {
    query["sendInitialEvents"] = "true";
    // The server refuses sendInitialEvents with any other match.
    query["resourceVersionMatch"] = "NotOlderThan";
  }
  return {
    method: "GET",
    path: collectionPath(kind, options.namespace),
    query,
    accept: acceptObject(options.detail),
  };
}

function parseWatchEvent<T extends KubeObject>(what: string, value: unknown): WatchEvent<T> {
  const { type, object } = (value ?? {}) as { readonly type?: unknown; readonly object?: T };
  if (type === "ERROR") throw refusedError(what, { status: 0, body: object });
  const resourceVersion = object?.metadata?.resourceVersion;
  if (object === undefined || typeof resourceVersion !== "string" || resourceVersion === "") {
    throw new KubeApiError("malformed", `${what}: an event has no object with a resourceVersion`);
  }
  switch (type) {
    case "ADDED":
    case "MODIFIED":
    case "DELETED":
      return { type, object };
    case "BOOKMARK": {
      const initialEventsEnd = object.metadata?.annotations?.[initialEventsEndAnnotation] === "true";
      return { type, resourceVersion, initialEventsEnd };
    }
    default:
      throw new KubeApiError("malformed", `${what}: an event has an unknown type`);
  }
}

// The media types of the client. JSON only: V8 parses it fastest, and protobuf would need the schema of every kind.

export const json = "application/json";

// JSON is valid YAML, and this is the one apply media type that every supported server accepts.
const applyPatch = "application/apply-patch+yaml";

const jsonPatch = "application/json-patch+json";

function acceptObject(detail: Detail | undefined): string {
  return detail === "metadata" ? `${json};as=PartialObjectMetadata;g=meta.k8s.io;v=v1` : json;
}

function acceptList(detail: Detail | undefined): string {
  return detail === "metadata" ? `${json};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1` : json;
}

// Builds the URL path for a kind and a name. Names come from outside (the control plane, the extras of a token), so each
// is validated here: a name that could leave its segment ("..", "a/b", "%2e"), or that no object can have, is rejected
// before anything is sent.

// DNS-1123 subdomains, plus upper case and ":", which RBAC names such as "system:node" have. No character in this set is
// special in a URL, so nothing is escaped.
const objectName = /^[A-Za-z0-9]([A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?$/;
const dnsLabel = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const dnsSubdomain = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/** Without a namespace: the objects of all namespaces. */
export function collectionPath(kind: ResourceKind, namespace?: string): string {
  const { group, version } = kind.servedBy ?? kind;
  const root = group === "" ? "/api" : `/apis/${checked(dnsSubdomain, "group", group)}`;
  const plural = checked(dnsSubdomain, "resource", kind.plural);
  const base = `${root}/${checked(dnsLabel, "version", version)}`;
  if (namespace === undefined) return `${base}/${plural}`;
  if (!kind.namespaced) throw invalid(`${kind.kind} is cluster-scoped and cannot have a namespace`);
  return `${base}/namespaces/${checked(dnsLabel, "namespace", namespace)}/${plural}`;
}

export function objectPath(kind: ResourceKind, ref: ObjectRef, subresource?: string): string {
  // Without this check, a forgotten namespace would address a different resource.
  if (kind.namespaced && ref.namespace === undefined) throw invalid(`a ${kind.kind} needs a namespace`);
  const path = `${collectionPath(kind, ref.namespace)}/${checked(objectName, "name", ref.name)}`;
  return subresource === undefined ? path : `${path}/${checked(dnsLabel, "subresource", subresource)}`;
}

/** The resource and the name, for messages. */
function describeObject(kind: ResourceKind, ref: { namespace?: string; name?: string }): string {
  const place = [ref.namespace, ref.name].filter((part) => part !== undefined && part !== "");
  return [kind.plural, place.join("/")].filter((part) => part !== "").join(" ");
}

function checked(rule: RegExp, what: string, value: string): string {
  if (rule.test(value)) return value;
  const shown = JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}...` : value);
  throw invalid(`invalid ${what} ${shown}`);
}

function invalid(message: string): KubeApiError {
  return new KubeApiError("invalid-name", message);
}
