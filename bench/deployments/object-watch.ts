// Watches the objects of one kind independently of krane. It shares no code with krane, and asks for metadata only
// where that is enough, because it takes CPU time from the measured processes.
import { once } from "node:events";
import type { ClientRequest, IncomingMessage } from "node:http";
import { get } from "node:https";
import { createInterface } from "node:readline";
import type { Cluster } from "../../test/support/cluster.ts";
import { Occurrences } from "./occurrences.ts";

export interface SeenObject {
  readonly key: string;
  readonly generation: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly ready: boolean;
}

export interface ObjectWatch {
  readonly seen: Occurrences<SeenObject>;
  current(key: string): SeenObject | undefined;
  close(): void;
}

interface WatchLine {
  readonly type: string;
  readonly object: {
    readonly metadata?: {
      readonly namespace?: string;
      readonly name?: string;
      readonly resourceVersion?: string;
      readonly generation?: number;
      readonly labels?: Readonly<Record<string, string>>;
    };
    readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
  };
}

const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/**
 * A watch that a busy server ends, as happens now and then, is reopened where it ended. `onEnd` is called if that is
 * not possible; the watch must not be trusted after that.
 */
export async function watchObjects(
  cluster: Pick<Cluster, "serverUrl" | "ca" | "adminToken">,
  { path, detail }: { readonly path: string; readonly detail: "metadata" | "whole" },
  onEnd: (reason: Error) => void,
): Promise<ObjectWatch> {
  const objects = new Map<string, SeenObject>();
  const seen = new Occurrences<SeenObject>();
  let closed = false;
  let resourceVersion = "";
  let outgoing: ClientRequest | undefined;

  const open = async () => {
    const query = new URLSearchParams({ watch: "true", timeoutSeconds: "3600", resourceVersion });
    outgoing = get(new URL(`${path}?${query}`, cluster.serverUrl), {
      ca: cluster.ca,
      agent: false,
      headers: {
        authorization: `Bearer ${cluster.adminToken}`,
        accept: detail === "metadata" ? metadataOnly : "application/json",
      },
    });
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    if (incoming.statusCode !== 200) throw new Error(`the watch of ${path} returned ${incoming.statusCode}`);
    // A broken connection also emits "close".
    for (const one of [outgoing, incoming]) one.on("error", () => undefined);
    createInterface(incoming)
      .on("line", take)
      .on("error", () => undefined)
      .on("close", () => void reopen());
  };
  const reopen = async () => {
    if (closed) return;
    try {
      await open();
    } catch (cause) {
      if (!closed) onEnd(new Error(`the watch of ${path} ended`, { cause }));
      closed = true;
    }
  };
  const take = (line: string) => {
    const { type, object } = JSON.parse(line) as WatchLine;
    if (type === "ERROR") {
      closed = true;
      onEnd(new Error(`the watch of ${path} failed: ${line}`));
      return;
    }
    resourceVersion = object.metadata?.resourceVersion ?? resourceVersion;
    if (type !== "ADDED" && type !== "MODIFIED") return;
    const one = seenObject(object);
    objects.set(one.key, one);
    seen.emit(one);
  };

  await open();
  return {
    seen,
    current: (key) => objects.get(key),
    close() {
      closed = true;
      outgoing?.destroy();
    },
  };
}

function seenObject({ metadata, status }: WatchLine["object"]): SeenObject {
  return {
    key: `${metadata?.namespace}/${metadata?.name}`,
    generation: metadata?.generation ?? 0,
    labels: metadata?.labels ?? {},
    ready: (status?.conditions ?? []).some((one) => one.type === "Ready" && one.status === "True"),
  };
}
