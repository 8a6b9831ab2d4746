// krane as a library: a whole agent, or one of its controllers, within another program. See docs/library.md.
export type { AgentDeps } from "./agent/agent-deps.ts";
export { type Clock, createSystemClock, type Timer } from "./concurrency/clock.ts";
export { createSeededRandom, createSystemRandom, type Random } from "./concurrency/random.ts";
export type { Config, DeletionConfig, IsolationConfig, RegionKey } from "./config/config.ts";
export {
  type ConfigInput,
  type ConfigOutcome,
  type InvalidConfig,
  parseConfig,
  type ValidConfig,
} from "./config/parse.ts";
export type { ConfigProblem, SettingOrigin } from "./config/problem.ts";
export { renderProblems } from "./config/render.ts";
export { Secret } from "./config/secret.ts";
export type { SecretSource } from "./config/secret-source.ts";
export type { ControlPlane } from "./control-plane/connection.ts";
export { ControlPlaneError } from "./control-plane/error.ts";
export type { ObjectFilter } from "./engine/controller-status.ts";
export type { OrderRecordsPlace } from "./engine/kube-order-records.ts";
export type { Outcome } from "./engine/object-status.ts";
export type { OrderRecord, OrderRecords, RecordOutcome } from "./engine/order-records.ts";
export type {
  AdoptedObject,
  AdoptionOutcome,
  OrderOutcome,
  SealedObjects,
} from "./engine/running-controller.ts";
export { loadSeal, type SealSource } from "./engine/seal-keys.ts";
export type { BlockedDeletion, ControllerStatus, ObjectStatus, Stranger } from "./gen/krane/v1/agent_pb.ts";
export { defaultPort as DeploymentPort } from "./kinds/deployment/spec.ts";
export { sentinelPort as SentinelPort } from "./kinds/sentinel/identity.ts";
export type { KubeApi } from "./kube/api.ts";
export { KubeApiError } from "./kube/errors.ts";
export type { KubeObject, ObjectRef, ResourceKind } from "./kube/types.ts";
export {
  type ControlPlaneConnectionOptions,
  connectControlPlane,
  connectKubernetes,
  type KubernetesConnection,
  type KubernetesOptions,
} from "./library/connections.ts";
export {
  CiliumController,
  type CiliumControllerOptions,
  type ControllerDeps,
  createOrderRecords,
  DeploymentController,
  type DeploymentControllerOptions,
  type DeploymentDeletion,
  type DeploymentOrder,
  type EngineOptions,
  type PolicyDeletion,
  type PolicyOrder,
  type RegistryLogin,
  SentinelController,
  type SentinelControllerOptions,
  type SentinelDeletion,
  type SentinelOrder,
} from "./library/controllers.ts";
export type { HostDeps } from "./library/host-deps.ts";
export { type RunDeps, run } from "./library/run.ts";
export * as labels from "./model/labels.ts";
export {
  customerNodeClass as CustomerNodeClass,
  sentinelNamespace as NamespaceSentinel,
  sentinelNodeClass as SentinelNodeClass,
} from "./model/labels.ts";
export type { Seal } from "./model/seal.ts";
export { createLog, type Log, type LogDeps, type LogLevel, type LogOptions } from "./telemetry/log.ts";
export { type BuildInfo, createMetrics, type Metrics } from "./telemetry/metrics.ts";
