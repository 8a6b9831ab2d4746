// What tests of programs that embed krane stand on: a Kubernetes API server and a control plane, both within
// the process. See docs/library.md.

export { createInProcessTransport, type InProcessOptions } from "./dev/in-process-transport.ts";
export {
  type ApiServer,
  type ApiServerOptions,
  administrator,
  createApiServer,
} from "./dev/kube-apiserver/api-server.ts";
export type { ApiServerDeps } from "./dev/kube-apiserver/clock.ts";
export type { HttpServerHandle } from "./dev/kube-apiserver/http-server.ts";
export { createKubeApi } from "./kube/client.ts";
export { kinds, type LiveObject } from "./library/kinds.ts";
export { startTestCluster, type TestCluster, type TestClusterOptions } from "./library/test-cluster.ts";
export {
  createTestControlPlane,
  type TestControlPlane,
  type TestControlPlaneOptions,
} from "./library/test-control-plane.ts";
export type { Admin } from "./server/admin.ts";
export type { Faults } from "./server/faults.ts";
export {
  createInMemoryControlPlane,
  type InMemoryControlPlane,
  type InMemoryControlPlaneOptions,
} from "./server/in-process.ts";
