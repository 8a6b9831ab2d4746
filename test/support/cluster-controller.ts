// The deployment controller on the cluster under test, with the rights of the chart and a control plane in memory.
import type { TestContext } from "node:test";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSystemRandom } from "../../src/concurrency/random.ts";
import { Secret } from "../../src/config/secret.ts";
import type { KindControllerOptions } from "../../src/kinds/kind.ts";
import { kinds } from "../../src/kinds/kinds.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { fixedCredential } from "../../src/kube/credentials.ts";
import { createHttpTransport } from "../../src/kube/http-transport.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { createRecordingKubeApi } from "../simulation/recording-kube-api.ts";
import { defaultOptions, region } from "../simulation/simulated-region.ts";
import type { TestCluster } from "./cluster-under-test.ts";
import type { ServiceAccountAccess } from "./deployed-rights.ts";
import { createKeptLog } from "./kept-log.ts";
import { connectToPlane } from "./plane-connection.ts";
import { createQuietLog } from "./quiet-log.ts";
import { createTestPlane, type TestPlane } from "./store-admin.ts";
import { testSeal } from "./test-seal.ts";

const createDeploymentController = await kinds.deployment.loadController();
const clock = createSystemClock();
const token = new Secret("test-token");

/** A control plane that knows the region. */
export async function createRegionPlane(): Promise<TestPlane> {
  const plane = createTestPlane({ tokens: [token] }, { clock, log: createQuietLog() });
  await plane.admin.registerRegion(region);
  return plane;
}

export interface ClusterControllerParts {
  readonly cluster: TestCluster;
  readonly account: ServiceAccountAccess;
  readonly plane: TestPlane;
}

/** It is stopped at the end of the test, or by `stop`. */
export async function startClusterController(
  t: TestContext,
  { cluster, account, plane }: ClusterControllerParts,
  options: Partial<KindControllerOptions>,
) {
  const kept = createKeptLog();
  const credentials = fixedCredential({ authorization: `Bearer ${account.token}` });
  const endpoint = { server: cluster.serverUrl, ca: cluster.ca, credentials };
  const transport = createHttpTransport({ endpoint, connections: 16 }, { clock });
  const controlPlane = connectToPlane(plane, { controller: "deployments", region, token }, { clock });
  const metrics = createMetrics({ version: "0", revision: "r", nodeVersion: "v0" });
  const api = createRecordingKubeApi(createKubeApi(transport));
  const random = createSystemRandom();
  const deps = { controlPlane, api, clock, random, log: kept.log, metrics, seal: testSeal };
  const controller = createDeploymentController({ ...defaultOptions, ...options }, deps);
  const stop = async () => {
    await controller.stop();
    await controlPlane.close();
    await transport.close();
  };
  t.after(stop);
  await controller.start();
  return { controller, kept, api, stop };
}
