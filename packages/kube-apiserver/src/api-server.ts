// The embedded Kubernetes API server, without a transport.
//
// `handle` is synchronous and does no I/O. Time and randomness come in as deps, so the same requests in the same order
// give the same resourceVersions, uids and events.

import type { AccessRule } from "./access.ts";
import { type ApiServerDeps, systemDeps } from "./clock.ts";
import type { Core } from "./core.ts";
import { startEstablishing } from "./custom-resources/establishing.ts";
import { dispatch } from "./dispatch.ts";
import { Faults } from "./faults.ts";
import { systemNamespaces } from "./namespace-lifecycle.ts";
import { ResourceRegistry } from "./registry.ts";
import type { ApiResponse, ServerRequest } from "./request.ts";
import type { User } from "./resource.ts";
import { builtinResources } from "./served-kinds.ts";
import { ObjectStore } from "./store.ts";
import { TokenIssuer } from "./tokens.ts";
import { WatchHub } from "./watch-hub.ts";

export interface ApiServerOptions {
  /** Changes kept for watches and paged lists. Default 10,000. */
  readonly changesMax?: number;
  /** For users outside system:masters. Default: no rules, so they may do nothing. */
  readonly rules?: readonly AccessRule[];
  /** Bearer tokens and their users. */
  readonly staticTokens?: ReadonlyMap<string, User>;
}

export const administrator: User = {
  username: "kubernetes-admin",
  groups: ["system:masters", "system:authenticated"],
};

export interface ApiServer {
  /** All objects, for code in the same process. */
  readonly store: ObjectStore;
  readonly registry: ResourceRegistry;
  readonly tokens: TokenIssuer;
  readonly faults: Faults;
  /** Handles a request synchronously. Watches end when they are closed, time out or fall behind. */
  handle(request: ServerRequest): ApiResponse;
  /** Ends all watches and timers. */
  stop(): void;
}

/** Uses the system's clock and randomness by default. */
export function createApiServer(
  { clock, random }: ApiServerDeps = systemDeps(),
  options: ApiServerOptions = {},
): ApiServer {
  const store = new ObjectStore(options.changesMax === undefined ? {} : { changesMax: options.changesMax });
  const registry = new ResourceRegistry(builtinResources);
  const watches = new WatchHub();
  const tokens = new TokenIssuer({ store, clock, random, staticTokens: options.staticTokens ?? new Map() });
  const core: Core = { store, registry, watches, tokens, rules: options.rules ?? [], clock, random };
  const stopEstablishing = startEstablishing(core);
  const handle = (request: ServerRequest): ApiResponse => dispatch(core, request);
  for (const name of systemNamespaces) {
    const body = { apiVersion: "v1", kind: "Namespace", metadata: { name } };
    handle({
      method: "POST",
      path: "/api/v1/namespaces",
      body,
      user: administrator,
      userAgent: "kube-apiserver",
    });
  }
  return {
    store,
    registry,
    tokens,
    faults: new Faults(store, watches),
    handle,
    stop() {
      stopEstablishing();
      watches.closeAll();
    },
  };
}
