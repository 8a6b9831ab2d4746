// Types and helpers shared by all parts of the request pipeline.

import type { AccessRule } from "./access.ts";
import type { ApiServerDeps } from "./clock.ts";
import type { ResourceRegistry } from "./registry.ts";
import type { ServerRequest } from "./request.ts";
import type { RequestContext, ServedResource } from "./resource.ts";
import type { ObjectKey, ObjectStore } from "./store.ts";
import { formatTimestamp } from "./timestamps.ts";
import type { TokenIssuer } from "./tokens.ts";
import type { KubeObject } from "./types.ts";
import type { WatchHub } from "./watch-hub.ts";

export interface Core extends ApiServerDeps {
  readonly store: ObjectStore;
  readonly registry: ResourceRegistry;
  readonly watches: WatchHub;
  readonly tokens: TokenIssuer;
  readonly rules: readonly AccessRule[];
}

/** One request with its target. */
export interface Scope {
  readonly core: Core;
  readonly request: ServerRequest;
  readonly resource: ServedResource;
  /** "" for cluster-wide kinds and for all namespaces. */
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
  /** Collected during the request, and sent with a successful response. */
  readonly warnings: string[];
}

export function timestampOf(core: Core): string {
  return formatTimestamp(core.clock.wallMs());
}

export function keyOf(scope: Scope, name = scope.name): ObjectKey {
  const { group, plural } = scope.resource.kind;
  return { group, plural, namespace: scope.namespace, name };
}

export function contextOf({ core, request }: Scope): RequestContext {
  return {
    user: request.user,
    timestamp: timestampOf(core),
    random: () => core.random.next(),
    read: ({ group, plural }, namespace, name) =>
      core.store.get({ group, plural, namespace, name }) as KubeObject | undefined,
    readAll: (resource, namespace) => core.store.list(resource, namespace) as readonly KubeObject[],
  };
}
