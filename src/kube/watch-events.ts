// One watch as the API server sends it: a line per event. What the protocol does not allow is an
// error and never skipped, because a skipped event is a change that nobody will ever see.
import { notify } from "../concurrency/notify.ts";
import type { WatchEvent, WatchOptions } from "./api.ts";
import { KubeApiError, refusedError } from "./errors.ts";
import { acceptObject } from "./media-types.ts";
import { collectionPath, describeObject } from "./paths.ts";
import type { KubeRequest, KubeTransport } from "./transport.ts";
import type { KubeObject, ResourceKind } from "./types.ts";

const initialEventsEndAnnotation = "k8s.io/initial-events-end";

export async function* watchEvents<T extends KubeObject>(
  transport: KubeTransport,
  kind: ResourceKind<T>,
  options: WatchOptions,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  const what = `watch ${describeObject(kind, options)}`;
  const stream = await transport.stream(watchRequest(kind, options), signal);
  if (stream.refusal !== undefined) throw refusedError(what, stream.refusal);
  // An error of the listener, thrown here, would leave a stream behind that nobody reads or ends.
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
