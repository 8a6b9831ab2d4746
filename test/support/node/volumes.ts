// Volumes for claims, because the node has no provisioner. Any user may write to them: Kubernetes does not change the owner of
// a folder of the node.

import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { TestCluster } from "../cluster-under-test.ts";

const count = 4;

export async function provideVolumes(cluster: Pick<TestCluster, "kubectl">, dir: string): Promise<void> {
  for (let index = 1; index <= count; index++) {
    const path = join(dir, String(index));
    await mkdir(path, { recursive: true });
    await chmod(path, 0o777);
    const volume = {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name: `volume-${index}` },
      spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path } },
    };
    await cluster.kubectl(["apply", "-f", "-"], { input: JSON.stringify(volume) });
  }
}
