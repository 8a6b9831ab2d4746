// Holds an agent to the list of calls: whatever it asks of a cluster and is not on the list is refused, as a cluster
// with the chart's roles would refuse it, and remembered, so that the test fails even where the agent copes.
import { clusterCalls } from "../../src/agent/cluster-calls.ts";
import type { CallingPart, ClusterVerb } from "../../src/kinds/cluster-call.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { KubeApiError } from "../../src/kube/errors.ts";
import type { KubeObject, ResourceKind } from "../../src/kube/types.ts";

/** Where the agents of tests keep their own objects. */
export const stateNamespace = "krane";

/** One thing that was asked, in the words of RBAC. */
export interface AskedCall {
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string | undefined;
  readonly verb: string;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

export function isListed(asked: AskedCall, parts: readonly CallingPart[]): boolean {
  return clusterCalls.some(
    ({ part, kind, subresource, verbs, namespace, isForState, names }) =>
      parts.includes(part) &&
      kind.group === asked.group &&
      kind.plural === asked.resource &&
      (subresource ?? "") === (asked.subresource ?? "") &&
      verbs.some((verb) => verb === asked.verb) &&
      (namespace === undefined || namespace === asked.namespace) &&
      (!isForState || asked.namespace === stateNamespace) &&
      (names === undefined || (asked.name !== undefined && names.includes(asked.name))),
  );
}

export interface ListedKubeApi extends KubeApi {
  /** What was asked and refused, a line for each. */
  readonly unlisted: readonly string[];
}

export function createListedKubeApi(api: KubeApi, parts: readonly CallingPart[]): ListedKubeApi {
  const unlisted: string[] = [];
  const check = (verbs: readonly ClusterVerb[], kind: ResourceKind, place: Place) => {
    // An eviction is of another group than the pod at whose subresource it is created.
    const { group } = kind.servedBy ?? kind;
    const { plural: resource } = kind;
    for (const verb of verbs) {
      if (isListed({ ...place, group, resource, verb }, parts)) continue;
      const where = [place.namespace, place.name].filter((part) => part !== undefined).join("/");
      const what = `${verb} ${[resource, place.subresource].filter(Boolean).join("/")} ${where}`.trim();
      unlisted.push(what);
      const facts = { status: 403, reason: "Forbidden" };
      throw new KubeApiError("refused", `${what}: 403 Forbidden: it is not in the list of calls`, facts);
    }
  };
  return {
    unlisted,
    async get(kind, ref, options, signal) {
      check(["get"], kind, ref);
      return api.get(kind, ref, options, signal);
    },
    async list(kind, options, signal) {
      check(["list"], kind, placeOf(options));
      return api.list(kind, options, signal);
    },
    async *watch(kind, options, signal) {
      check(["watch"], kind, placeOf(options));
      yield* api.watch(kind, options, signal);
    },
    async apply(kind, manifest, options, signal) {
      // Whether the object is there already is known to the server only.
      check(["patch", "create"], kind, placeOf(manifest.metadata, options));
      return api.apply(kind, manifest, options, signal);
    },
    async patch(kind, object, operations, options, signal) {
      check(["patch"], kind, placeOf(object.metadata, options));
      return api.patch(kind, object, operations, options, signal);
    },
    async delete(kind, ref, options, signal) {
      check(["delete"], kind, ref);
      return api.delete(kind, ref, options, signal);
    },
    async create(kind, object, options, signal) {
      check(["create"], kind, placeOf(options.ref ?? object.metadata, options));
      return api.create(kind, object, options, signal);
    },
  };
}

interface Place {
  readonly namespace?: string;
  readonly name?: string;
  readonly subresource?: string;
}

function placeOf(
  named: Pick<NonNullable<KubeObject["metadata"]>, "namespace" | "name"> = {},
  { subresource }: Pick<Place, "subresource"> = {},
): Place {
  return {
    ...(named.namespace !== undefined && { namespace: named.namespace }),
    ...(named.name !== undefined && { name: named.name }),
    ...(subresource !== undefined && { subresource }),
  };
}
