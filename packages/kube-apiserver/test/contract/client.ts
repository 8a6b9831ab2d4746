// A Kubernetes client as small as the suite allows: it builds requests and reads answers, and holds no state.
import type { KubeStatus, KubeStatusCause, ObjectRef } from "../../src/types.ts";
import type {
  Answer,
  ContractApi,
  ContractTransport,
  Detail,
  Refusal,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from "./api.ts";
import type { Kind, Manifest } from "./manifest.ts";

export const json = "application/json";
export const applyPatch = "application/apply-patch+yaml";

export function createContractApi(transport: ContractTransport): ContractApi {
  const send = transport.send.bind(transport);
  return {
    async get(kind, ref, { resourceVersion, detail }, signal) {
      const query = definedOnly({ resourceVersion });
      const path = objectPath(kind, ref);
      const answer = await send({ method: "GET", path, query, accept: accept(detail) }, signal);
      return isAbsent(answer, ref.name) ? undefined : accepted(answer);
    },
    async list(kind, { namespace, detail, limit, ...rest }, signal) {
      const query = definedOnly({ ...rest, limit: limit?.toString() });
      const path = collectionPath(kind, namespace);
      const answer = await send({ method: "GET", path, query, accept: accept(detail, "List") }, signal);
      const { items, metadata } = accepted(answer) as unknown as ListBody;
      const { resourceVersion = "", remainingItemCount } = metadata ?? {};
      return {
        items: items ?? [],
        resourceVersion,
        ...(metadata?.continue ? { continue: metadata.continue } : {}),
        ...(remainingItemCount === undefined ? {} : { remainingItemCount }),
      };
    },
    watch: (kind, options, signal) => watchEvents(transport, kind, options, signal),
    async apply(kind, manifest, { force, detail, ...options }, signal) {
      const path = objectPath(kind, refOf(manifest), options.subresource);
      const query = { ...writeQuery(options), force: String(force) };
      const body = typed(kind, manifest);
      const answer = await send(
        { method: "PATCH", path, query, contentType: applyPatch, accept: accept(detail), body },
        signal,
      );
      return { object: accepted(answer), kind: answer.status === 201 ? "created" : "applied" };
    },
    async delete(kind, ref, { uid, resourceVersion, propagation, gracePeriodSeconds, dryRun }, signal) {
      const preconditions = definedOnly({ uid, resourceVersion });
      const body = {
        apiVersion: "v1",
        kind: "DeleteOptions",
        ...(Object.keys(preconditions).length > 0 && { preconditions }),
        ...(propagation && { propagationPolicy: propagation }),
        ...(gracePeriodSeconds !== undefined && { gracePeriodSeconds }),
        ...(dryRun && { dryRun: ["All"] }),
      };
      const path = objectPath(kind, ref);
      const answer = await send({ method: "DELETE", path, contentType: json, accept: json, body }, signal);
      if (isAbsent(answer, ref.name)) return { kind: "absent" };
      const { metadata } = accepted(answer);
      const isHeld =
        metadata?.deletionTimestamp !== undefined &&
        (metadata.deletionGracePeriodSeconds !== 0 || (metadata.finalizers ?? []).length > 0);
      return { kind: isHeld ? "deleting" : "deleted" };
    },
    async create(kind, object, { subresource, ref, ...options }, signal) {
      const path =
        subresource === undefined
          ? collectionPath(kind, object.metadata?.namespace)
          : objectPath(kind, ref ?? refOf(object), subresource);
      const body = typed(kind, object);
      const query = writeQuery(options);
      return accepted(
        await send({ method: "POST", path, query, contentType: json, accept: json, body }, signal),
      );
    },
  };
}

interface ListBody {
  /** Go writes an empty list that was never filled as null. */
  readonly items?: readonly Manifest[] | null;
  readonly metadata?: {
    readonly resourceVersion?: string;
    readonly continue?: string;
    readonly remainingItemCount?: number;
  };
}

async function* watchEvents(
  transport: ContractTransport,
  kind: Kind,
  options: WatchOptions,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent> {
  const { labelSelector, fieldSelector, resourceVersion, timeoutSeconds, sendInitialEvents } = options;
  const query = definedOnly({
    watch: "true",
    labelSelector,
    fieldSelector,
    resourceVersion,
    timeoutSeconds: timeoutSeconds?.toString(),
    allowWatchBookmarks: options.bookmarks || sendInitialEvents ? "true" : undefined,
    ...(sendInitialEvents && { sendInitialEvents: "true", resourceVersionMatch: "NotOlderThan" }),
  });
  const path = collectionPath(kind, options.namespace);
  const stream = await transport.stream(
    { method: "GET", path, query, accept: accept(options.detail) },
    signal,
  );
  if (stream.refusal !== undefined) throw refusalOf(stream.refusal);
  options.onOpen?.();
  for await (const value of stream.values) yield eventOf(value as WatchLine);
}

interface WatchLine {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: Manifest;
}

function eventOf({ type, object }: WatchLine): WatchEvent {
  if (type === "ERROR") throw refusalOf({ status: 0, body: object });
  if (type !== "BOOKMARK") return { type, object };
  const { resourceVersion = "", annotations } = object.metadata ?? {};
  return { type, resourceVersion, initialEventsEnd: annotations?.["k8s.io/initial-events-end"] === "true" };
}

export function collectionPath(kind: Kind, namespace?: string): string {
  const { group, version } = kind.servedBy ?? kind;
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  return namespace === undefined
    ? `${root}/${kind.plural}`
    : `${root}/namespaces/${namespace}/${kind.plural}`;
}

export function objectPath(kind: Kind, { namespace, name }: ObjectRef, subresource?: string): string {
  const path = `${collectionPath(kind, namespace)}/${name}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

class RefusalError extends Error implements Refusal {
  override readonly name = "RefusalError";
  readonly status: number | undefined;
  readonly reason: string | undefined;
  readonly causes: readonly KubeStatusCause[];
  readonly retryAfterMs: number | undefined;

  constructor({ status, body, retryAfterSeconds }: Answer) {
    const said = statusOf(body);
    super(said?.message ?? String(body));
    this.status = status >= 400 ? status : said?.code;
    this.reason = said?.reason || undefined;
    this.causes = said?.details?.causes ?? [];
    const waitSeconds = retryAfterSeconds ?? said?.details?.retryAfterSeconds;
    this.retryAfterMs = waitSeconds === undefined ? undefined : waitSeconds * 1_000;
  }
}

/** The error for an answer that is no success. */
export function refusalOf(answer: Answer): Refusal {
  return new RefusalError(answer);
}

function accepted(answer: Answer): Manifest {
  if (answer.status >= 300) throw refusalOf(answer);
  return answer.body as Manifest;
}

/** Only the server's word for this very name: a 404 also answers for a kind that is not served. */
function isAbsent({ status, body }: Answer, name: string): boolean {
  const said = status === 404 ? statusOf(body) : undefined;
  return said?.reason === "NotFound" && said.details?.name === name;
}

function statusOf(body: unknown): KubeStatus | undefined {
  const status = body as KubeStatus | undefined;
  return status?.kind === "Status" ? status : undefined;
}

function refOf({ metadata }: Manifest): ObjectRef {
  const { name = "", namespace } = metadata ?? {};
  return namespace === undefined ? { name } : { name, namespace };
}

function typed(kind: Kind, manifest: Manifest): Manifest {
  const apiVersion = kind.group === "" ? kind.version : `${kind.group}/${kind.version}`;
  return { ...manifest, apiVersion, kind: kind.kind };
}

function accept(detail: Detail | undefined, list: "" | "List" = ""): string {
  return detail === "metadata" ? `${json};as=PartialObjectMetadata${list};g=meta.k8s.io;v=v1` : json;
}

function writeQuery({
  fieldManager,
  dryRun,
  fieldValidation,
}: WriteOptions & { readonly fieldManager?: string }): Record<string, string> {
  return definedOnly({ fieldManager, dryRun: dryRun ? "All" : undefined, fieldValidation });
}

function definedOnly(values: Record<string, string | undefined>): Record<string, string> {
  const defined = Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(defined);
}
