// A controller on the cluster under test, with a control plane in memory.
import type { TestContext } from "node:test";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSystemRandom } from "../../src/concurrency/random.ts";
import { Secret } from "../../src/config/secret.ts";
import type { ControllerDeps } from "../../src/engine/controller-options.ts";
import { createOrderRecords } from "../../src/engine/kube-order-records.ts";
import type { RunningController } from "../../src/engine/running-controller.ts";
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

const createDeployments = await kinds.deployment.loadController();
const createSentinels = await kinds.sentinel.loadController();
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
  /** With the rights of the chart; without it, the controller is an administrator. */
  readonly account?: ServiceAccountAccess;
  readonly plane: TestPlane;
  /** The namespace of the records of orders; without it, orders are not recorded. */
  readonly recordsNamespace?: string;
}

type CreatedController = Pick<RunningController, "start" | "stop">;
type Create<C extends CreatedController> = (options: KindControllerOptions, deps: ControllerDeps) => C;

/** The controller of deployments. It is stopped at the end of the test, or by `stop`. */
export function startClusterController(
  t: TestContext,
  parts: ClusterControllerParts,
  options: Partial<KindControllerOptions> = {},
) {
  return startController(t, { ...parts, controller: "deployments", create: createDeployments }, options);
}

/** The controller of sentinels. */
export function startSentinelController(
  t: TestContext,
  parts: ClusterControllerParts,
  options: Partial<KindControllerOptions> = {},
) {
  return startController(t, { ...parts, controller: "sentinels", create: createSentinels }, options);
}

async function startController<C extends CreatedController>(
  t: TestContext,
  parts: ClusterControllerParts & { readonly controller: string; readonly create: Create<C> },
  options: Partial<KindControllerOptions>,
) {
  const { cluster, account, plane, controller: name, recordsNamespace: namespace } = parts;
  const kept = createKeptLog();
  const { log } = kept;
  const authorization = `Bearer ${account?.token ?? cluster.adminToken}`;
  const endpoint = {
    server: cluster.serverUrl,
    ca: cluster.ca,
    credentials: fixedCredential({ authorization }),
  };
  const transport = createHttpTransport({ endpoint, connections: 16 }, { clock });
  const controlPlane = connectToPlane(plane, { controller: name, region, token }, { clock });
  const metrics = createMetrics({ version: "0", revision: "r", nodeVersion: "v0" });
  const api = createRecordingKubeApi(createKubeApi(transport));
  const random = createSystemRandom();
  const orders =
    namespace === undefined
      ? undefined
      : createOrderRecords({ namespace, region, controller: name }, { api, log });
  const deps = { controlPlane, api, clock, random, log, metrics, seal: testSeal, ...(orders && { orders }) };
  const controller = parts.create({ ...defaultOptions, ...options }, deps);
  const stop = async () => {
    await controller.stop();
    await controlPlane.close();
    await transport.close();
  };
  t.after(stop);
  await controller.start();
  return { controller, kept, api, stop };
}
