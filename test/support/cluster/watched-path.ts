// A plain watch on the API server. It shares no code with krane's own client, so that it can judge it.
import { once } from "node:events";
import { request } from "node:https";
import { createInterface } from "node:readline";
import type { ClusterFacts } from "./facts.ts";

type Server = Pick<ClusterFacts, "serverUrl" | "ca" | "adminToken">;
type OnEvent<T> = (event: string, object: T) => void;

/**
 * Resolves once it is open. Begins with an ADDED for each object that there is, also whenever the server has ended it: under
 * load it does.
 */
export async function watchPath<T>(
  server: Server,
  path: string,
  signal: AbortSignal,
  onEvent: OnEvent<T>,
): Promise<void> {
  let watch = await openWatch(server, path, signal, onEvent);
  void (async () => {
    while (!signal.aborted) {
      await watch.ended;
      if (!signal.aborted) watch = await openWatch(server, path, signal, onEvent);
    }
  })().catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

async function openWatch<T>(
  { serverUrl, ca, adminToken }: Server,
  path: string,
  signal: AbortSignal,
  onEvent: OnEvent<T>,
): Promise<{ readonly ended: Promise<unknown> }> {
  const separator = path.includes("?") ? "&" : "?";
  const outgoing = request(new URL(`${path}${separator}watch=true&timeoutSeconds=3600`, serverUrl), {
    ca,
    signal,
    agent: false,
    headers: { authorization: `Bearer ${adminToken}` },
  });
  outgoing.end();
  const [incoming] = await once(outgoing, "response");
  outgoing.on("error", () => undefined);
  incoming.on("error", () => undefined);
  const lines = createInterface({ input: incoming }).on("line", (line) => {
    const { type, object } = JSON.parse(line) as { readonly type: string; readonly object: T };
    onEvent(type, object);
  });
  return { ended: once(lines, "close") };
}
