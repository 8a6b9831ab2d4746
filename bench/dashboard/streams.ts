// The streams of many browsers: each signs in, and follows the fleet on a connection of its own, as a browser's tabs do together.
import { setMaxListeners } from "node:events";
import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { Agent, fetch } from "undici";
import { AdminService } from "../../src/gen/krane/admin/v1/admin_pb.ts";
import { marker } from "./fleet.ts";

export interface FollowedStreams {
  /** How many are open now. */
  openCount(): number;
  /** Why those that are not open any more ended. */
  readonly broken: readonly string[];
  /** When each news of the marker arrived. */
  readonly heardAtMs: readonly number[];
  stop(): Promise<void>;
}

export async function followFleets(
  count: number,
  { url, tokens }: { readonly url: string; readonly tokens: readonly string[] },
): Promise<FollowedStreams> {
  const stopping = new AbortController();
  // Each stream listens to it.
  setMaxListeners(0, stopping.signal);
  const heardAtMs: number[] = [];
  const broken: string[] = [];
  let open = 0;
  const follow = async (api: Client<typeof AdminService>, onOpen: () => void) => {
    let isOpen = false;
    try {
      for await (const { regions } of api.watchFleet({}, { signal: stopping.signal })) {
        if (!isOpen) {
          isOpen = true;
          open += 1;
          onOpen();
        }
        if (regions.some(({ changed }) => changed.some(({ id }) => id === marker.id)))
          heardAtMs.push(Date.now());
      }
    } catch (error) {
      if (!stopping.signal.aborted) throw error;
    } finally {
      if (isOpen) open -= 1;
    }
  };
  const followed: Promise<void>[] = [];
  for (let number = 0; number < count; number += 1) {
    const api = browserApi(url, await signIn(url, tokens[number % tokens.length] ?? "", number));
    await new Promise<void>((resolve, reject) => {
      const running = follow(api, resolve);
      running.catch(reject);
      followed.push(running.catch((error: unknown) => void broken.push(String(error))));
    });
  }
  return {
    openCount: () => open,
    broken,
    heardAtMs,
    async stop() {
      stopping.abort();
      await Promise.all(followed);
    },
  };
}

/** Resolves with the cookie of a new session. Each browser has an address of its own: attempts are limited for each. */
async function signIn(url: string, token: string, number: number): Promise<string> {
  const dispatcher = new Agent({ localAddress: `127.0.1.${1 + (number % 250)}` });
  const response = await fetch(`${url}/${AdminService.typeName}/CreateSession`, {
    method: "POST",
    dispatcher,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: "{}",
  });
  const cookie = response.headers.get("set-cookie")?.split(";", 1)[0];
  const answer = await response.text();
  await dispatcher.close();
  if (cookie === undefined) throw new Error(`not signed in: ${response.status} ${answer}`);
  return cookie;
}

function browserApi(baseUrl: string, cookie: string): Client<typeof AdminService> {
  const transport = createConnectTransport({
    baseUrl,
    httpVersion: "1.1",
    interceptors: [
      (next) => (request) => {
        request.header.set("cookie", cookie);
        request.header.set("sec-fetch-site", "same-origin");
        return next(request);
      },
    ],
  });
  return createClient(AdminService, transport);
}
