// Controllers of single kinds, for programs that embed krane. Constructing a controller starts nothing. It can be started
// once.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { DeletionConfig, IsolationConfig } from "../config/config.ts";
import { Secret } from "../config/secret.ts";
import type { Setting } from "../config/setting.ts";
import { settings } from "../config/settings.ts";
import type { ControlPlane } from "../control-plane/connection.ts";
import { Controller } from "../engine/controller.ts";
import { createOrderRecords as createRecords, type OrderRecordsPlace } from "../engine/kube-order-records.ts";
import type { OrderRecords } from "../engine/order-records.ts";
import type { OrderOutcome, RunningController } from "../engine/running-controller.ts";
import {
  ApplyCiliumNetworkPolicySchema,
  type CiliumNetworkPolicyStateSchema,
  DeleteCiliumNetworkPolicySchema,
} from "../gen/ctrl/v1/cilium_network_policy_pb.ts";
import {
  ApplyDeploymentSchema,
  DeleteDeploymentSchema,
  type DeploymentStateSchema,
  type ReportDeploymentStatusRequestSchema,
} from "../gen/ctrl/v1/deployment_pb.ts";
import {
  ApplySentinelSchema,
  DeleteSentinelSchema,
  type ReportSentinelStatusRequestSchema,
  type SentinelStateSchema,
} from "../gen/ctrl/v1/sentinel_pb.ts";
import { deploymentRecipe } from "../kinds/deployment/controller.ts";
import { deploymentKind } from "../kinds/deployment/kind.ts";
import type { SeenDeployment } from "../kinds/deployment/seen.ts";
import type { DeploymentSpec } from "../kinds/deployment/spec.ts";
import type { KindControllerOptions } from "../kinds/kind.ts";
import type { KindSettings } from "../kinds/kind-settings.ts";
import { policyRecipe } from "../kinds/policy/controller.ts";
import { policyKind } from "../kinds/policy/kind.ts";
import type { PolicySpec } from "../kinds/policy/spec.ts";
import { sentinelRecipe } from "../kinds/sentinel/controller.ts";
import { sentinelKind } from "../kinds/sentinel/kind.ts";
import type { ObservedSentinel } from "../kinds/sentinel/seen.ts";
import type { SentinelSpec } from "../kinds/sentinel/spec.ts";
import type { KubeApi } from "../kube/api.ts";
import type { Seal } from "../model/seal.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import { build, completeHostDeps, type HostDeps } from "./host-deps.ts";

/** Defaults are those of the settings with the same names, so that a controller behaves as in an agent. */
export interface EngineOptions {
  /** The region that it manages, for example "us-east-1.aws"; the same as that of its control plane connection. */
  readonly region: string;
  /** Objects that are reconciled concurrently. Default 64. */
  readonly workers?: number;
  /** When an object that the control plane does not know may be deleted; see `[deletion]` in the configuration. */
  readonly deletion?: Partial<DeletionConfig>;
  /** How long start() waits for the watches. Default 60 s. */
  readonly startTimeoutMs?: number;
}

export interface ControllerDeps extends HostDeps {
  /** See `connectKubernetes`. */
  readonly api: KubeApi;
  /** See `connectControlPlane`. */
  readonly controlPlane: ControlPlane;
  /** See `loadSeal`. Controllers of the same region share it. */
  readonly seal: Seal;
  /** See `createOrderRecords`. Default: orders end with the program. */
  readonly orders?: OrderRecords;
  /** Default: metrics are collected, but not exposed. */
  readonly metrics?: Metrics;
}

/** The login of a registry. */
export interface RegistryLogin {
  /** Host, and port if it is not 443. */
  readonly host: string;
  readonly username: string;
  readonly password: string;
}

export interface DeploymentControllerOptions extends EngineOptions {
  /** "required" (the default) holds workloads back while the cluster has no CiliumNetworkPolicy. */
  readonly networkPolicy?: IsolationConfig["networkPolicy"];
  /** Of the pods: "gvisor" (the default), or "" to run trusted code without a sandbox. */
  readonly runtimeClass?: IsolationConfig["runtimeClass"];
  /** Registries that images may come from. Default: all. */
  readonly registries?: readonly string[];
  /** The registry that needs a login to pull images. */
  readonly registry?: RegistryLogin;
  /** For workloads with encrypted variables: the audience of their tokens, and the address of krane. */
  readonly secrets?: { readonly audience?: string; readonly endpoint?: string };
  /** The namespace that this program runs in. What is desired in it is rejected. */
  readonly ownNamespace?: string;
}

export type DeploymentOrder = MessageInitShape<typeof ApplyDeploymentSchema>;
export type DeploymentDeletion = MessageInitShape<typeof DeleteDeploymentSchema>;

/** Manages the deployments of one region: ReplicaSets, their pull secrets and the ingress policies of their environments. */
export interface DeploymentController extends RunningController {
  /** Applies the message as if the stream had delivered it. */
  applyDeployment(order: DeploymentOrder, signal: AbortSignal): Promise<OrderOutcome>;

  /** Deletes the deployment immediately, if krane owns it. It is not an error if it does not exist. */
  deleteDeployment(deletion: DeploymentDeletion, signal: AbortSignal): Promise<OrderOutcome>;
}

export const DeploymentController: new (
  options: DeploymentControllerOptions,
  deps: ControllerDeps,
) => DeploymentController = class extends Controller<
  typeof DeploymentStateSchema,
  DeploymentSpec,
  typeof ReportDeploymentStatusRequestSchema,
  SeenDeployment,
  KindSettings
> {
  constructor(options: DeploymentControllerOptions, deps: ControllerDeps) {
    super(deploymentKind, deploymentRecipe, engineOptions(options, deps), engineDeps(deps));
  }

  applyDeployment(order: DeploymentOrder, signal: AbortSignal): Promise<OrderOutcome> {
    return this.apply(create(ApplyDeploymentSchema, order), signal);
  }

  deleteDeployment(deletion: DeploymentDeletion, signal: AbortSignal): Promise<OrderOutcome> {
    return this.delete(create(DeleteDeploymentSchema, deletion), signal);
  }
};

export interface SentinelControllerOptions
  extends EngineOptions,
    Pick<DeploymentControllerOptions, "registries" | "registry"> {}

export type SentinelOrder = MessageInitShape<typeof ApplySentinelSchema>;
export type SentinelDeletion = MessageInitShape<typeof DeleteSentinelSchema>;

/** Manages the sentinels of one region: their apps/v1 Deployments, Services, disruption budgets and gossip policies. */
export interface SentinelController extends RunningController {
  /** Applies the message as if the stream had delivered it. */
  applySentinel(order: SentinelOrder, signal: AbortSignal): Promise<OrderOutcome>;

  /** Deletes all five objects immediately, if krane owns them. It is not an error if the sentinel does not exist. */
  deleteSentinel(deletion: SentinelDeletion, signal: AbortSignal): Promise<OrderOutcome>;
}

export const SentinelController: new (
  options: SentinelControllerOptions,
  deps: ControllerDeps,
) => SentinelController = class extends Controller<
  typeof SentinelStateSchema,
  SentinelSpec,
  typeof ReportSentinelStatusRequestSchema,
  ObservedSentinel,
  KindSettings
> {
  constructor(options: SentinelControllerOptions, deps: ControllerDeps) {
    super(sentinelKind, sentinelRecipe, engineOptions(options, deps), engineDeps(deps));
  }

  applySentinel(order: SentinelOrder, signal: AbortSignal): Promise<OrderOutcome> {
    return this.apply(create(ApplySentinelSchema, order), signal);
  }

  deleteSentinel(deletion: SentinelDeletion, signal: AbortSignal): Promise<OrderOutcome> {
    return this.delete(create(DeleteSentinelSchema, deletion), signal);
  }
};

export interface CiliumControllerOptions
  extends EngineOptions,
    Pick<DeploymentControllerOptions, "ownNamespace"> {}

export type PolicyOrder = MessageInitShape<typeof ApplyCiliumNetworkPolicySchema>;
export type PolicyDeletion = MessageInitShape<typeof DeleteCiliumNetworkPolicySchema>;

/** Manages the network policies of one region. */
export interface CiliumController extends RunningController {
  /** Applies the message as if the stream had delivered it. */
  applyPolicy(order: PolicyOrder, signal: AbortSignal): Promise<OrderOutcome>;

  /** Deletes the policy immediately, if krane owns it. It is not an error if it does not exist. */
  deletePolicy(deletion: PolicyDeletion, signal: AbortSignal): Promise<OrderOutcome>;
}

export const CiliumController: new (
  options: CiliumControllerOptions,
  deps: ControllerDeps,
) => CiliumController = class extends Controller<
  typeof CiliumNetworkPolicyStateSchema,
  PolicySpec,
  never,
  never,
  KindSettings
> {
  constructor(options: CiliumControllerOptions, deps: ControllerDeps) {
    super(policyKind, policyRecipe, engineOptions(options, deps), engineDeps(deps));
  }

  applyPolicy(order: PolicyOrder, signal: AbortSignal): Promise<OrderOutcome> {
    return this.apply(create(ApplyCiliumNetworkPolicySchema, order), signal);
  }

  deletePolicy(deletion: PolicyDeletion, signal: AbortSignal): Promise<OrderOutcome> {
    return this.delete(create(DeleteCiliumNetworkPolicySchema, deletion), signal);
  }
};

export const defaultWorkers = defaultOf(settings.reconcileWorkers);

function engineOptions(
  options: DeploymentControllerOptions,
  { controlPlane }: ControllerDeps,
): KindControllerOptions {
  const { workers = defaultWorkers, deletion, startTimeoutMs, region, registries = [] } = options;
  checkRegion(region, controlPlane);
  const { ownNamespace, secrets, registry, networkPolicy, runtimeClass } = options;
  return {
    workers,
    deletion: { ...defaultDeletion(), ...deletion },
    ...(startTimeoutMs !== undefined && { startTimeoutMs }),
    rules: { registries, ...(ownNamespace !== undefined && { ownNamespace }) },
    region,
    networkPolicy: networkPolicy ?? defaultOf(settings.isolationNetworkPolicy),
    runtimeClass: runtimeClass ?? defaultOf(settings.isolationRuntimeClass),
    secrets: { audience: defaultOf(settings.secretsAudience), ...secrets },
    // Wrapped immediately, so that it cannot be logged (K7).
    ...(registry && { registry: { ...registry, password: new Secret(registry.password) } }),
  };
}

/** A controller of one region on the desired state of another would take that region's objects for unknown ones. */
function checkRegion(region: unknown, controlPlane: ControlPlane): void {
  if (typeof region !== "string" || region === "")
    throw new TypeError('region: is required, for example "us-east-1.aws"');
  if (region !== controlPlane.region)
    throw new TypeError(
      `region: is ${region}, but the control plane connection is for ${controlPlane.region}`,
    );
}

function engineDeps(deps: ControllerDeps) {
  const { api, controlPlane, seal, orders, metrics = createMetrics(build) } = deps;
  return { api, controlPlane, seal, orders, metrics, ...completeHostDeps(deps) };
}

function defaultDeletion(): DeletionConfig {
  return {
    mode: defaultOf(settings.deletionMode),
    confirmations: defaultOf(settings.deletionConfirmations),
    minimumAgeMs: defaultOf(settings.deletionMinimumAge),
    budgetObjects: defaultOf(settings.deletionBudgetObjects),
    budgetFraction: defaultOf(settings.deletionBudgetFraction),
    budgetWindowMs: defaultOf(settings.deletionBudgetWindow),
  };
}

function defaultOf<T>({ path, fallback }: Setting<T>): T {
  if (fallback === undefined) throw new TypeError(`${path} has no default`);
  return fallback.value({ hasSection: () => false, randomId: () => "" });
}

/**
 * Records the orders of one controller as ConfigMaps. A record counts as an order, so choose a
 * namespace that tenants cannot write to.
 */
export function createOrderRecords(
  place: OrderRecordsPlace,
  deps: Pick<HostDeps, "log"> & { readonly api: KubeApi },
): OrderRecords {
  const { log } = completeHostDeps(deps);
  return createRecords(place, { api: deps.api, log });
}
