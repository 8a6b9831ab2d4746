// The controllers of an agent. They start together, and stop in reverse: what takes traffic before what lets it in.
import type { Config } from "../config/config.ts";
import type { ControllerName, ControlPlane } from "../control-plane/connection.ts";
import { createCiliumController } from "../controllers/cilium-controller.ts";
import type { ControllerDeps, ControllerOptions } from "../controllers/controller.ts";
import { createDeploymentController } from "../controllers/deployment-controller.ts";
import { createSentinelController } from "../controllers/sentinel-controller.ts";
import type { RegistryCredentials } from "../model/pull-secret.ts";
import type { ViewedController } from "./agent-view.ts";
import type { SchedulerPlaces } from "./scheduler-part.ts";
import type { SecretsPlaces } from "./secrets-step.ts";

export interface AgentController extends ViewedController {
  start(signal: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

export interface ControllerSettings {
  readonly config: Config;
  readonly engine: ControllerOptions;
  /** The namespace that krane runs in, where it is known. */
  readonly ownNamespace?: string;
  readonly registry?: RegistryCredentials;
  readonly scheduler: SchedulerPlaces;
  readonly secrets: SecretsPlaces;
}

export interface ControllerRow {
  readonly name: ControllerName;
  readonly title: string;
  /** It makes pods, so it needs the credentials of the registry. */
  readonly makesPods: boolean;
  create(
    settings: ControllerSettings,
    deps: ControllerDeps & { readonly controlPlane: ControlPlane },
  ): AgentController;
}

export const controllers: readonly ControllerRow[] = [
  {
    name: "cilium",
    title: "cilium controller",
    makesPods: false,
    create: (settings, deps) =>
      createCiliumController({ ...settings.engine, rules: ownNamespaceOf(settings) }, deps),
  },
  {
    name: "deployments",
    title: "deployment controller",
    makesPods: true,
    create(settings, deps) {
      const { config, engine } = settings;
      const { audience, endpoint } = config.secrets;
      const { registries, networkPolicy } = config.isolation;
      const secrets = { audience, ...(endpoint !== undefined && { endpoint }) };
      const options = {
        ...engine,
        networkPolicy,
        rules: { registries, ...ownNamespaceOf(settings) },
        settings: { secrets, ...registryOf(settings) },
        ...scraperOf(settings, deps),
      };
      const controller = createDeploymentController(options, deps);
      settings.scheduler.deployments = controller;
      settings.secrets.deployments = controller.desired;
      return controller;
    },
  },
  {
    name: "sentinels",
    title: "sentinel controller",
    makesPods: true,
    create(settings, deps) {
      const { config, engine } = settings;
      const options = {
        ...engine,
        rules: { registries: config.isolation.registries },
        settings: { region: config.region.label, ...registryOf(settings) },
      };
      const controller = createSentinelController(options, deps);
      settings.scheduler.sentinels = controller;
      return controller;
    },
  },
];

function ownNamespaceOf({ ownNamespace }: ControllerSettings) {
  return ownNamespace === undefined ? {} : { ownNamespace };
}

/** Instances let krane in only where it may ask them for something. */
function scraperOf({ config, ownNamespace }: ControllerSettings, { log }: Pick<ControllerDeps, "log">) {
  if (!config.scheduler?.scrape) return {};
  if (ownNamespace !== undefined) return { scraperNamespace: ownNamespace };
  log.warn("scheduler.scrape is on, but network policies cannot let krane in: its namespace is not known", {
    remedy: "run krane in a pod of the cluster, or let it in by a policy of your own",
  });
  return {};
}

function registryOf({ registry }: ControllerSettings) {
  return registry === undefined ? {} : { registry };
}
