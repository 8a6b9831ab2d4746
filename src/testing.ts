// What tests of programs that embed krane stand on: a Kubernetes API server and a control plane, both within
// the process. See docs/library.md.

export {
  type ApiServer,
  type ApiServerDeps,
  type ApiServerOptions,
  administrator,
  createApiServer,
  type HttpServerHandle,
} from "@krane/kube-apiserver";
export { createInProcessTransport, type InProcessOptions } from "./dev/in-process-transport.ts";
export { ObjectKind } from "./gen/krane/admin/v1/admin_pb.ts";
export { createKubeApi } from "./kube/client.ts";
export {
  kinds,
  type LiveObject,
  startTestCluster,
  type TestCluster,
  type TestClusterOptions,
} from "./library/test-cluster.ts";
export {
  createTestControlPlane,
  type TestControlPlane,
  type TestControlPlaneOptions,
} from "./library/test-control-plane.ts";
export type { Admin } from "./server/admin-service/admin-client.ts";
export type { Faults } from "./server/faults.ts";
export {
  createInMemoryControlPlane,
  type InMemoryControlPlane,
  type InMemoryControlPlaneOptions,
} from "./server/in-process.ts";
