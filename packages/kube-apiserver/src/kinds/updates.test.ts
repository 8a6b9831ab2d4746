import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createThrough, updateThrough } from "../../test/support/kind-hooks.ts";
import type { JsonObject } from "../json.ts";
import type { ServedResource } from "../resource.ts";
import { StatusError } from "../status-error.ts";
import type { KubeObject } from "../types.ts";
import { configmaps } from "./configmaps.ts";
import { customresourcedefinitions } from "./customresourcedefinitions.ts";
import { deployments } from "./deployments.ts";
import { namespaces } from "./namespaces.ts";
import { nodes } from "./nodes.ts";
import { pods } from "./pods.ts";
import { replicasets } from "./replicasets.ts";
import { runtimeclasses } from "./runtimeclasses.ts";
import { secrets } from "./secrets.ts";
import { services } from "./services.ts";

type Edit = (object: Record<string, never>) => void;

/** The causes of an update, as `field: message`, and what it would store. */
function update(
  resource: ServedResource,
  input: unknown,
  edit: Edit,
): { causes: string[]; object: JsonObject } {
  const { object: previous, causes } = createThrough(resource, input);
  assert.deepEqual(causes, []);
  const next = structuredClone(previous) as Record<string, never>;
  edit(next);
  const run = updateThrough(resource, next, previous);
  return { causes: run.causes.map(({ field, message }) => `${field}: ${message}`), object: run.object };
}

const at = (object: Record<string, never>, ...path: string[]) =>
  path.reduce((value: Record<string, unknown>, key) => value[key] as Record<string, unknown>, object);
const set =
  (path: string, value: unknown): Edit =>
  (object) => {
    const keys = path.split(".");
    const last = keys.pop() ?? "";
    at(object, ...keys)[last] = value;
  };

const template = { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i:1" }] } };
const workload = { metadata: { name: "w" }, spec: { selector: { matchLabels: { a: "b" } }, template } };
const pod = { metadata: { name: "p", namespace: "n" }, spec: { containers: [{ name: "c", image: "i:1" }] } };
const service = {
  metadata: { name: "s", namespace: "n" },
  spec: { ports: [{ port: 80 }], selector: { a: "b" } },
};

describe("the selector of a workload", () => {
  for (const resource of [replicasets, deployments]) {
    it(`cannot be changed after creation (${resource.kind.kind})`, () => {
      const { causes } = update(resource, workload, (object) => {
        set("spec.selector", { matchLabels: { x: "y" } })(object);
        set("spec.template.metadata.labels", { x: "y" })(object);
      });
      assert.deepEqual(causes, [
        'spec.selector: Invalid value: {"matchLabels":{"x":"y"}}: field is immutable',
      ]);
    });
  }

  it("may stay while everything else changes", () => {
    const { causes } = update(replicasets, workload, set("spec.replicas", 7));
    assert.deepEqual(causes, []);
  });
});

describe("a pod that exists", () => {
  it("may get another image and more tolerations", () => {
    const { causes } = update(pods, pod, (object) => {
      set("spec.containers.0.image", "i:2")(object);
      const tolerations = at(object, "spec")["tolerations"] as unknown as unknown[];
      tolerations.push({ key: "k", operator: "Exists" });
    });
    assert.deepEqual(causes, []);
  });

  const refusals: [string, Edit, RegExp][] = [
    [
      "another node",
      set("spec.nodeName", "other"),
      /^spec: Forbidden: pod updates may not change fields other than/,
    ],
    ["other variables", set("spec.containers.0.env", [{ name: "A", value: "1" }]), /^spec: Forbidden: /],
    [
      "another container",
      set("spec.containers", [...pod.spec.containers, { name: "d", image: "i" }]),
      /^spec\.containers: Forbidden: pod updates may not add or remove containers$/,
    ],
    [
      "fewer tolerations",
      set("spec.tolerations", []),
      /^spec\.tolerations: Forbidden: existing toleration can not/,
    ],
  ];
  for (const [what, edit, expected] of refusals) {
    it(`may not get ${what}`, () => {
      const { causes } = update(pods, pod, edit);
      assert.equal(causes.length, 1);
      assert.match(causes[0] ?? "", expected);
    });
  }

  it("gets only the zone of the node that it is created on", () => {
    const zone = { "topology.kubernetes.io/zone": "z" };
    const node = { kind: "Node", metadata: { name: "one", labels: { ...zone, disk: "fast" } } };
    const onNode = { ...pod, spec: { ...pod.spec, nodeName: "one" } };
    const { object } = createThrough(pods, onNode, [node]);
    assert.deepEqual(at(object as Record<string, never>, "metadata")["labels"], zone);
    assert.equal(
      at(createThrough(pods, onNode).object as Record<string, never>, "metadata")["labels"],
      undefined,
    );
  });
});

describe("a service's addresses", () => {
  const addressOf = (object: JsonObject) => at(object as Record<string, never>, "spec")["clusterIP"];

  it("stay when an update does not mention them, and cannot be changed", () => {
    const { object: previous } = createThrough(services, service);
    const silent = updateThrough(services, service, previous);
    assert.deepEqual(silent.causes, []);
    assert.equal(addressOf(silent.object), addressOf(previous));
    const { causes } = update(services, service, (object) => {
      set("spec.clusterIP", "10.96.0.77")(object);
      set("spec.clusterIPs", ["10.96.0.77"])(object);
    });
    assert.deepEqual(causes, ['spec.clusterIPs[0]: Invalid value: ["10.96.0.77"]: may not change once set']);
  });

  it("are never allocated twice", () => {
    const taken: KubeObject[] = [];
    for (let index = 0; index < 50; index++) {
      const input = { ...service, metadata: { name: `s${index}`, namespace: "n" } };
      const { object } = createThrough(services, input, taken);
      taken.push({ ...object, kind: "Service" });
    }
    const addresses = taken.map((object) => addressOf(object as unknown as JsonObject));
    assert.equal(new Set(addresses).size, 50);
    const asked = { ...service, spec: { ...service.spec, clusterIP: addresses[0] } };
    assert.throws(
      () => createThrough(services, asked, taken),
      (error) => error instanceof StatusError && /provided IP is already allocated/.test(error.message),
    );
  });

  it("are freed for ExternalName, and node ports are allocated for an external type", () => {
    const named = update(services, service, (object) => {
      set("spec.type", "ExternalName")(object);
      set("spec.externalName", "example.com")(object);
    });
    assert.deepEqual(named.causes, []);
    assert.equal(addressOf(named.object), undefined);
    const open = update(services, service, set("spec.type", "NodePort"));
    assert.deepEqual(open.causes, []);
    const [port] = at(open.object as Record<string, never>, "spec")["ports"] as unknown as {
      nodePort: number;
    }[];
    assert.ok(port !== undefined && port.nodePort >= 30_000 && port.nodePort < 32_768);
  });

  it("are rejected together with a type that does not have them", () => {
    const exposed = { ...service, spec: { ...service.spec, type: "LoadBalancer" } };
    const { causes } = update(services, exposed, (object) => {
      set("spec.type", "ClusterIP")(object);
      set("spec.ports.0.nodePort", 31_000)(object);
      set("spec.externalTrafficPolicy", "Local")(object);
      set("spec.allocateLoadBalancerNodePorts", false)(object);
    });
    assert.deepEqual(
      causes.map((cause) => cause.replace(/:.*/, "")),
      ["spec.ports[0].nodePort", "spec.allocateLoadBalancerNodePorts", "spec.externalTrafficPolicy"],
    );
    const named = update(services, service, (object) => {
      set("spec.type", "ExternalName")(object);
      set("spec.externalName", "example.com")(object);
      set("spec.clusterIP", "10.96.0.77")(object);
    });
    assert.deepEqual(named.causes, ["spec.clusterIPs: Forbidden: may not be set for ExternalName services"]);
  });

  it("of a load balancer are removed from the status when the type changes", () => {
    const exposed = { ...service, spec: { ...service.spec, type: "LoadBalancer" } };
    const { object } = createThrough(services, exposed);
    const previous = { ...object, status: { loadBalancer: { ingress: [{ ip: "192.0.2.1" }] } } };
    const next = structuredClone(previous) as unknown as Record<string, never>;
    assert.deepEqual(updateThrough(services, next, previous).object["status"], previous.status);
    set("spec.type", "NodePort")(next);
    assert.deepEqual(updateThrough(services, next, previous).object["status"], { loadBalancer: {} });
  });
});

describe("immutable fields", () => {
  const sealed = { metadata: { name: "x" }, data: { a: "Yg==" }, immutable: true };

  it("include the type of a secret", () => {
    const { causes } = update(secrets, { metadata: { name: "x" } }, set("type", "other"));
    assert.deepEqual(causes, ['type: Invalid value: "other": field is immutable']);
  });

  for (const resource of [secrets, configmaps]) {
    it(`include the data of an immutable ${resource.singular}, and the immutable field itself`, () => {
      const why = "Forbidden: field is immutable when `immutable` is set";
      assert.deepEqual(update(resource, sealed, set("data", { a: "Yw==" })).causes, [`data: ${why}`]);
      assert.deepEqual(update(resource, sealed, set("immutable", false)).causes, [`immutable: ${why}`]);
      assert.deepEqual(update(resource, sealed, set("metadata.labels", { a: "b" })).causes, []);
    });
  }

  it("include the handler of a runtime class and the address range of a node", () => {
    const runtimeClass = { metadata: { name: "x" }, handler: "one" };
    const { causes } = update(runtimeclasses, runtimeClass, set("handler", "two"));
    assert.deepEqual(causes, ['handler: Invalid value: "two": field is immutable']);
    const node = { metadata: { name: "x" }, spec: { podCIDR: "10.0.0.0/16" } };
    const moved = update(nodes, node, (object) => {
      set("spec.podCIDR", "10.1.0.0/16")(object);
      set("spec.podCIDRs", ["10.1.0.0/16"])(object);
    });
    assert.equal(moved.causes.length, 1);
  });

  it("include the names of a definition, once it is established", () => {
    const version = {
      name: "v1",
      served: true,
      storage: true,
      schema: { openAPIV3Schema: { type: "object" } },
    };
    const input = {
      metadata: { name: "foos.example.com" },
      spec: {
        group: "example.com",
        scope: "Namespaced",
        names: { plural: "foos", kind: "Foo" },
        versions: [version],
      },
    };
    const { object: previous } = createThrough(customresourcedefinitions, input);
    const established = { ...previous, status: { conditions: [{ type: "Established", status: "True" }] } };
    const next = structuredClone(previous) as Record<string, never>;
    set("spec.names.kind", "Bar")(next);
    const { causes } = updateThrough(customresourcedefinitions, next, established as unknown as JsonObject);
    assert.deepEqual(
      causes.map(({ field }) => field),
      ["spec.names.kind"],
    );
  });
});

describe("a namespace", () => {
  it("keeps its finalizer on any update, and shows when it is terminating", () => {
    const { object, causes } = update(namespaces, { metadata: { name: "n" } }, set("spec.finalizers", []));
    assert.deepEqual(causes, []);
    assert.deepEqual(object["spec"], { finalizers: ["kubernetes"] });
    assert.equal(namespaces.isHeld?.(object), true);
    namespaces.markDeleting?.(object);
    assert.deepEqual(object["status"], { phase: "Terminating" });
  });
});
