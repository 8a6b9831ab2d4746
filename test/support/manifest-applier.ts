// Applies manifests to the cluster of a test run as krane does, by server-side apply under its name, and
// stricter than krane: a field that the API server does not know is refused.
import assert from "node:assert/strict";
import { appliedContentHash, manifestContentHash } from "../../src/engine/applied-content.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import type { ApiAnswer } from "./cluster/api-request.ts";
import type { TestCluster } from "./cluster-under-test.ts";

const places: Readonly<Record<string, string>> = {
  Namespace: "/api/v1/namespaces",
  Secret: "/api/v1/secrets",
  ConfigMap: "/api/v1/configmaps",
  Service: "/api/v1/services",
  Deployment: "/apis/apps/v1/deployments",
  ReplicaSet: "/apis/apps/v1/replicasets",
  PodDisruptionBudget: "/apis/policy/v1/poddisruptionbudgets",
  CiliumNetworkPolicy: "/apis/cilium.io/v2/ciliumnetworkpolicies",
  HTTPRoute: "/apis/gateway.networking.k8s.io/v1/httproutes",
};

export interface ManifestApplier {
  apply(manifest: KubeObject, force?: boolean): Promise<ApiAnswer>;
  /** The live object. */
  applied<T extends KubeObject>(manifest: T, force?: boolean): Promise<T>;
  /** Onto an object that is there, as krane takes it over: by force, and only onto this very one. */
  takenOver<T extends KubeObject>(manifest: T, live: KubeObject): Promise<T>;
  get<T extends KubeObject>(manifest: T): Promise<T | undefined>;
  delete(manifest: KubeObject, options?: object): Promise<void>;
}

export function createManifestApplier(cluster: TestCluster): ManifestApplier {
  const apply = (manifest: KubeObject, force = false) =>
    cluster.request({
      method: "PATCH",
      path: `${pathOf(manifest)}?fieldManager=krane&fieldValidation=Strict&force=${force}`,
      contentType: "application/apply-patch+yaml",
      body: manifest,
    });
  const applied = async <T extends KubeObject>(manifest: T, force = false): Promise<T> => {
    const answer = await apply(manifest, force);
    const isWell = answer.status === 200 || answer.status === 201;
    assert.ok(isWell, `${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body as T;
  };
  return {
    apply,
    applied,
    takenOver: (manifest, { metadata }) => {
      const uid = metadata?.uid ?? "";
      return applied({ ...manifest, metadata: { ...manifest.metadata, uid } }, true);
    },
    async get<T extends KubeObject>(manifest: T) {
      const { status, body } = await cluster.request({ path: pathOf(manifest) });
      return status === 404 ? undefined : (body as T);
    },
    async delete(manifest, options = {}) {
      await cluster.request({ method: "DELETE", path: pathOf(manifest), body: options });
    },
  };
}

/** What changes with every write: the version or, where a controller writes a status too, the generation. */
export function writeOf(object: KubeObject | undefined): string | undefined {
  const { generation, resourceVersion } = object?.metadata ?? {};
  return generation?.toString() ?? resourceVersion;
}

/** The server keeps the manifest as it was sent, so that krane sees at a glance that nothing has to be done. */
export function assertKeptAsSent(live: KubeObject, manifest: KubeObject): void {
  assert.equal(
    appliedContentHash(live),
    manifestContentHash(manifest),
    `${live.kind} is kept as it was sent`,
  );
}

/** Where the API server has it. */
export function pathOf({ kind = "", metadata = {} }: KubeObject): string {
  const place = places[kind] ?? "";
  const resource = place.slice(place.lastIndexOf("/") + 1);
  const group = place.slice(0, -resource.length);
  const namespace = metadata.namespace === undefined ? "" : `namespaces/${metadata.namespace}/`;
  return `${group}${namespace}${resource}/${metadata.name}`;
}
