// An in-process Kubernetes API server, and the controllers that make it a cluster. See README.md.

// The server. `createApiServer` starts nothing: use it through a handler or an HTTP server.
export type { AccessRule } from "./access.ts";
export { type ApiServer, type ApiServerOptions, administrator, createApiServer } from "./api-server.ts";
export { type ApiServerDeps, type Clock, type Random, systemDeps, type Timer } from "./clock.ts";
// The controllers: pods for ReplicaSets and Deployments, garbage collection, nodes.
export { createNodes, type NodeOptions } from "./controllers/nodes.ts";
export type { PodBehaviour, PodBehaviours } from "./controllers/pod-behaviour.ts";
export {
  type ControllersDeps,
  type ControllersOptions,
  type RunningControllers,
  startControllers,
} from "./controllers/start-controllers.ts";
// Fault injection: `server.faults`.
export type { Faults, Intercept } from "./faults.ts";
// The transports.
export { type ApiHandler, createHandler, type HandlerOptions } from "./handler.ts";
export { type HttpServerHandle, type HttpServerOptions, startHttpServer } from "./http-server.ts";
export type { ApiRequest, ApiResponse, ServerRequest, StreamResponse, WholeResponse } from "./request.ts";
export type { User } from "./resource.ts";
export type { KubeObject, KubeStatus, ObjectRef, ResourceKind } from "./types.ts";
