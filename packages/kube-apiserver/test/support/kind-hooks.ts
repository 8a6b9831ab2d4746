// Runs a kind's hooks over one object in the order of the request pipeline, without a
// server: what the tests of the kinds stand on.

import { schemaOf } from "../../src/builtin-schemas.ts";
import { decodeTyped } from "../../src/decode.ts";
import { copyJson, type JsonObject } from "../../src/json.ts";
import type { RequestContext, ServedResource } from "../../src/resource.ts";
import type { KubeObject, KubeStatusCause } from "../../src/types.ts";

export interface HookRun {
  readonly object: JsonObject;
  readonly causes: readonly KubeStatusCause[];
}

export function createThrough(
  resource: ServedResource,
  input: unknown,
  stored: readonly KubeObject[] = [],
): HookRun {
  const object = decoded(resource, input);
  const context = contextWith(stored);
  resource.admit?.(object, undefined, context);
  resource.prepareCreate?.(object, context);
  return { object, causes: resource.validate?.(object) ?? [] };
}

export function updateThrough(
  resource: ServedResource,
  input: unknown,
  previous: JsonObject,
  stored: readonly KubeObject[] = [],
): HookRun {
  const object = decoded(resource, input);
  const context = contextWith(stored);
  resource.admit?.(object, previous, context);
  resource.prepareUpdate?.(object, previous, context);
  const causes = [
    ...(resource.validate?.(object) ?? []),
    ...(resource.validateUpdate?.(object, previous) ?? []),
  ];
  return { object, causes };
}

function decoded(resource: ServedResource, input: unknown): JsonObject {
  const { object } = decodeTyped(schemaOf(resource), copyJson(input) as JsonObject);
  resource.defaults?.(object);
  return object;
}

function contextWith(stored: readonly KubeObject[]): RequestContext {
  let draws = 0;
  const of = (plural: string, namespace: string) =>
    stored.filter(
      ({ kind = "", metadata }) =>
        plural.startsWith(kind.toLowerCase()) && (namespace === "" || metadata?.namespace === namespace),
    );
  return {
    user: { username: "admin", groups: ["system:masters"] },
    timestamp: "2026-01-01T00:00:00Z",
    random: () => (draws++ % 10) / 10,
    read: ({ plural }, namespace, name) =>
      of(plural, namespace).find(({ metadata }) => metadata?.name === name),
    readAll: ({ plural }, namespace) => of(plural, namespace),
  };
}
