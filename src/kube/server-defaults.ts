// The fields that an API server adds by itself to the objects krane writes: defaults with their values, and allocations
// such as a cluster IP, which may have any value. Taken from what a real server returns for krane's manifests; a cluster
// test compares them. Only defaults inside parts that krane sends are needed.
import type { ResourceKind } from "./types.ts";

/** In place of a default: the server chooses the value, or krane does not care. */
const anyValue = Symbol("any value");

/** In the tree of a list: stands for each of its items. */
export const eachItem = "[]";

/** Mirrors the structure of an object. */
export interface ServerDefaults {
  readonly [field: string]: ServerDefaults | string | number | boolean | typeof anyValue;
}

const probe: ServerDefaults = {
  failureThreshold: 3,
  httpGet: { scheme: "HTTP" },
  periodSeconds: 10,
  successThreshold: 1,
  timeoutSeconds: 1,
};

const podTemplate: ServerDefaults = {
  metadata: {},
  spec: {
    containers: {
      [eachItem]: {
        livenessProbe: probe,
        readinessProbe: probe,
        ports: { [eachItem]: { protocol: "TCP" } },
        terminationMessagePath: "/dev/termination-log",
        terminationMessagePolicy: "File",
      },
    },
    dnsPolicy: "ClusterFirst",
    schedulerName: "default-scheduler",
    securityContext: {},
    terminationGracePeriodSeconds: 30,
    volumes: { [eachItem]: { projected: { defaultMode: 420 } } },
  },
};

const specs: Readonly<Record<string, ServerDefaults>> = {
  "apps/ReplicaSet": { template: podTemplate },
  "apps/Deployment": {
    progressDeadlineSeconds: 600,
    revisionHistoryLimit: 10,
    template: podTemplate,
  },
  "/Service": {
    clusterIP: anyValue,
    clusterIPs: anyValue,
    internalTrafficPolicy: "Cluster",
    ipFamilies: anyValue,
    ipFamilyPolicy: "SingleStack",
    sessionAffinity: "None",
  },
};

/** The tree for a whole object. Metadata and status count as the server's: krane compares only what it sends of them. */
export function serverDefaultsOf({ group, kind }: Pick<ResourceKind, "group" | "kind">): ServerDefaults {
  return {
    apiVersion: anyValue,
    kind: anyValue,
    metadata: anyValue,
    status: anyValue,
    spec: specs[`${group}/${kind}`] ?? {},
  };
}

/** What the tree has for a field; everything below `anyValue` is `anyValue`. */
export function defaultOf(defaults: ServerDefaults[string] | undefined, field: string) {
  return isTree(defaults) ? defaults[field] : defaults === anyValue ? anyValue : undefined;
}

/** Whether the server would have set exactly this. */
export function isServerDefault(value: unknown, expected: ServerDefaults[string] | undefined): boolean {
  // Go encodes an unset time or pointer as null.
  if (expected === anyValue || value === null || value === undefined) return true;
  if (!isTree(expected)) return value === expected;
  if (typeof value !== "object") return false;
  if (Array.isArray(value)) return value.every((item) => isServerDefault(item, expected[eachItem]));
  for (const [name, member] of Object.entries(value))
    if (!isServerDefault(member, expected[name])) return false;
  return true;
}

function isTree(expected: ServerDefaults[string] | undefined): expected is ServerDefaults {
  return typeof expected === "object";
}
