import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { replicaSets, services } from "../kube/resources.ts";
import { serverDefaultsOf } from "../kube/server-defaults.ts";
import type { KubeObject, ManagedFieldsEntry } from "../kube/types.ts";
import { createTolerance } from "./drift-tolerance.ts";
import { type DriftedField, disownOthers, findDriftedFields, repairOf } from "./drifted-fields.ts";

const defaults = serverDefaultsOf(replicaSets);
const time = "2026-11-16T10:00:00Z";

/** What krane applies, and what its entry in managedFields records. */
const manifest = {
  apiVersion: "apps/v1",
  kind: "ReplicaSet",
  metadata: { name: "web", namespace: "acme", labels: { own: "label" } },
  spec: {
    replicas: 2,
    template: {
      spec: {
        runtimeClassName: "gvisor",
        containers: [
          {
            name: "app",
            image: "app:1",
            ports: [{ containerPort: 80, name: "http" }],
            resources: { limits: { memory: "1024Mi" } },
          },
        ],
      },
    },
  },
};
const applied = {
  "f:metadata": { "f:labels": { "f:own": {} } },
  "f:spec": {
    "f:replicas": {},
    "f:template": {
      "f:spec": {
        "f:runtimeClassName": {},
        "f:containers": {
          'k:{"name":"app"}': {
            ".": {},
            "f:name": {},
            "f:image": {},
            "f:ports": {
              'k:{"containerPort":80,"protocol":"TCP"}': { ".": {}, "f:containerPort": {}, "f:name": {} },
            },
            "f:resources": { "f:limits": { "f:memory": {} } },
          },
        },
      },
    },
  },
};

interface Edit {
  readonly pod?: Readonly<Record<string, unknown>>;
  readonly container?: Readonly<Record<string, unknown>>;
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly by?: readonly ManagedFieldsEntry[];
}

/** The object as a server returns it, with its defaults, after an edit. */
function live({ pod, container, spec, metadata, by = [] }: Edit = {}): KubeObject {
  const app = {
    name: "app",
    image: "app:1",
    ports: [{ containerPort: 80, name: "http", protocol: "TCP" }],
    resources: { limits: { memory: "1Gi" } },
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
    ...container,
  };
  const managedFields = [{ manager: "krane", operation: "Apply", fieldsV1: applied }, ...by];
  const object = {
    ...manifest,
    metadata: { ...manifest.metadata, uid: "u", creationTimestamp: time, ...metadata, managedFields },
    spec: {
      replicas: 2,
      template: {
        metadata: { creationTimestamp: null },
        spec: {
          runtimeClassName: "gvisor",
          containers: [app],
          dnsPolicy: "ClusterFirst",
          schedulerName: "default-scheduler",
          securityContext: {},
          terminationGracePeriodSeconds: 30,
          ...pod,
        },
      },
      ...spec,
    },
    status: { replicas: 2 },
  };
  return object as KubeObject;
}

const drift = (object: KubeObject) => findDriftedFields(object, defaults, manifest as KubeObject);
const added = (object: KubeObject) => findDriftedFields(object, defaults);
const paths = (fields: readonly DriftedField[]) => fields.map(({ path }) => path);

function wrote(manager: string, podFields: Readonly<Record<string, unknown>>): ManagedFieldsEntry {
  return {
    manager,
    operation: "Update",
    time,
    fieldsV1: { "f:spec": { "f:template": { "f:spec": podFields } } },
  };
}

describe("drifted fields", () => {
  test("an object with nothing but the server's defaults and another spelling of an amount has none", () => {
    assert.deepEqual(drift(live()), []);
    assert.deepEqual(added(live()), []);
  });

  test("labels and annotations of others do not count, those of krane do", () => {
    const labels = { own: "label", extra: "label" };
    assert.deepEqual(drift(live({ metadata: { labels, annotations: { extra: "1" } } })), []);
    const changed = live({ metadata: { labels: { own: "edited" } } });
    assert.deepEqual(paths(drift(changed)), ["metadata.labels.own"]);
  });

  test("a field that krane does not send is removed, and its writer named", () => {
    const object = live({ pod: { hostNetwork: true }, by: [wrote("kubectl-edit", { "f:hostNetwork": {} })] });
    const [field, ...more] = drift(object);
    assert.deepEqual(more, []);
    assert.equal(field?.path, "spec.template.spec.hostNetwork");
    assert.deepEqual(field?.owner, { manager: "kubectl-edit", time });
    assert.deepEqual(paths(added(object)), ["spec.template.spec.hostNetwork"]);
    assert.deepEqual(repairOf(drift(object)), [{ op: "remove", path: "/spec/template/spec/hostNetwork" }]);
  });

  test("it counts the same if the writer calls itself krane, or has removed its entry", () => {
    for (const by of [[wrote("krane", { "f:hostNetwork": {} })], []])
      assert.deepEqual(paths(added(live({ pod: { hostNetwork: true }, by }))), [
        "spec.template.spec.hostNetwork",
      ]);
  });

  test("an added container, volume or environment variable is removed as a whole", () => {
    const object = live({
      pod: {
        containers: [
          { name: "evil", image: "evil", securityContext: { privileged: true } },
          {
            name: "app",
            image: "app:1",
            ports: [{ containerPort: 80, name: "http", protocol: "TCP" }],
            resources: { limits: { memory: "1Gi" } },
            env: [{ name: "X", value: "1" }],
          },
          { name: "more", image: "more" },
        ],
        volumes: [{ name: "host", hostPath: { path: "/" } }],
      },
    });
    assert.deepEqual(paths(drift(object)), [
      "spec.template.spec.containers[evil]",
      "spec.template.spec.containers[app].env",
      "spec.template.spec.containers[more]",
      "spec.template.spec.volumes",
    ]);
    assert.deepEqual(
      repairOf(drift(object)).map(({ path }) => path),
      [
        "/spec/template/spec/volumes",
        "/spec/template/spec/containers/2",
        "/spec/template/spec/containers/1/env",
        "/spec/template/spec/containers/0",
      ],
    );
  });

  test("another value in place of a default is set back, also a nested one", () => {
    const object = live({ pod: { dnsPolicy: "Default", securityContext: { runAsUser: 0 } } });
    assert.deepEqual(repairOf(drift(object)), [
      { op: "remove", path: "/spec/template/spec/securityContext" },
      { op: "replace", path: "/spec/template/spec/dnsPolicy", value: "ClusterFirst" },
    ]);
  });

  test("a field that krane sends is restored, whether it was changed, removed or lost its item", () => {
    assert.deepEqual(repairOf(drift(live({ spec: { replicas: 9 } }))), [
      { op: "replace", path: "/spec/replicas", value: 2 },
    ]);
    const { runtimeClassName: _, ...rest } = { runtimeClassName: undefined, hostPID: true };
    assert.deepEqual(paths(drift(live({ pod: { runtimeClassName: undefined, ...rest } }))), [
      "spec.template.spec.hostPID",
      "spec.template.spec.runtimeClassName",
    ]);
    const [gone] = repairOf(drift(live({ container: { ports: [] } })));
    assert.deepEqual(gone, {
      op: "add",
      path: "/spec/template/spec/containers/0/ports/-",
      value: { containerPort: 80, name: "http" },
    });
  });

  test("an unknown field that no manager wrote is a default of a newer server", () => {
    const unowned = drift(live({ pod: { brandNew: "yes", securityContext: { alsoNew: 1 } } }));
    assert.deepEqual(
      unowned.map(({ path, isUnknownDefault }) => [path, isUnknownDefault]),
      [
        ["spec.template.spec.securityContext.alsoNew", true],
        ["spec.template.spec.brandNew", true],
      ],
    );
    const owned = drift(live({ pod: { brandNew: "yes" }, by: [wrote("someone", { "f:brandNew": {} })] }));
    assert.deepEqual(
      owned.map(({ isUnknownDefault }) => isUnknownDefault),
      [false],
    );
  });

  test("what others put into a map that krane applied empty is found with the manifest", () => {
    const fieldsV1 = { "f:spec": { "f:endpointSelector": {} } };
    const policy = (endpointSelector: unknown) =>
      ({
        metadata: { managedFields: [{ manager: "krane", operation: "Apply", fieldsV1 }] },
        spec: { endpointSelector },
      }) as KubeObject;
    const narrowed = policy({ matchLabels: { only: "this" } });
    assert.deepEqual(
      paths(findDriftedFields(narrowed, defaults, { spec: { endpointSelector: {} } } as KubeObject)),
      ["spec.endpointSelector.matchLabels"],
    );
  });

  test("a list inside a value that krane applied as a whole is compared by its items", () => {
    const fieldsV1 = { "f:spec": { "f:endpointSelector": {} } };
    const matchExpressions = [{ key: "a", operator: "Exists" }];
    const policy = (items: readonly unknown[]) =>
      ({
        metadata: { managedFields: [{ manager: "krane", operation: "Apply", fieldsV1 }] },
        spec: { endpointSelector: { matchExpressions: items } },
      }) as KubeObject;
    const wanted = { spec: { endpointSelector: { matchExpressions } } } as KubeObject;
    assert.deepEqual(findDriftedFields(policy(matchExpressions), defaults, wanted), []);
    const more = policy([...matchExpressions, { key: "b", operator: "Exists" }]);
    assert.equal(findDriftedFields(more, defaults, wanted).length, 1);
  });

  test("allocations of a Service may have any value, other fields may not", () => {
    const fieldsV1 = { "f:spec": { "f:type": {} } };
    const service = {
      metadata: { managedFields: [{ manager: "krane", operation: "Apply", fieldsV1 }] },
      spec: {
        type: "ClusterIP",
        clusterIP: "10.0.0.9",
        clusterIPs: ["10.0.0.9"],
        ipFamilies: ["IPv6"],
        ipFamilyPolicy: "SingleStack",
        sessionAffinity: "ClientIP",
        externalIPs: ["1.2.3.4"],
      },
    } as KubeObject;
    assert.deepEqual(paths(findDriftedFields(service, serverDefaultsOf(services))), [
      "spec.sessionAffinity",
      "spec.externalIPs",
    ]);
  });

  test("other managers of the spec are disowned, those of the status are not", () => {
    const by = [wrote("mesh", { "f:dnsPolicy": {} }), { manager: "x", subresource: "status", fieldsV1: {} }];
    assert.deepEqual(disownOthers(live({ by })), [{ op: "remove", path: "/metadata/managedFields/1" }]);
  });
});

describe("tolerance", () => {
  const named = (path: string, manager?: string): DriftedField => ({
    path,
    pointer: "",
    value: "x",
    wanted: undefined,
    isUnknownDefault: false,
    ...(manager !== undefined && { owner: { manager, time } }),
  });

  test("a field is tolerated by its path, with everything below it", () => {
    const isTolerated = createTolerance({
      managers: [],
      fields: ["spec.template.metadata.annotations[mesh.io/*]"],
    });
    assert.equal(isTolerated(named("spec.template.metadata.annotations[mesh.io/status]")), true);
    assert.equal(isTolerated(named("spec.template.metadata.annotations[other.io/status]")), false);
    const below = createTolerance({ managers: [], fields: ["spec.template.spec.affinity"] });
    assert.equal(below(named("spec.template.spec.affinity.nodeAffinity")), true);
    assert.equal(below(named("spec.template.spec.affinityX")), false);
  });

  test("a manager is tolerated, but not for a field that lowers isolation", () => {
    const isTolerated = createTolerance({ managers: ["mesh"], fields: [] });
    assert.equal(isTolerated(named("spec.template.spec.nodeSelector", "mesh")), true);
    assert.equal(isTolerated(named("spec.template.spec.nodeSelector", "other")), false);
    for (const path of [
      "spec.template.spec.hostNetwork",
      "spec.template.spec.containers[evil]",
      "spec.template.spec.volumes[host]",
      "spec.endpointSelector.matchLabels",
      "spec.enableDefaultDeny",
    ])
      assert.equal(isTolerated(named(path, "mesh")), false, path);
  });

  test("a field that krane applies is never tolerated", () => {
    const isTolerated = createTolerance({ managers: ["mesh"], fields: ["*"] });
    assert.equal(isTolerated({ ...named("spec.replicas", "mesh"), wanted: 2 }), false);
  });
});
