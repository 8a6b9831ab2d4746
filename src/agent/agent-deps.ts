// The agent's dependencies on its host: clock, randomness, files, log, environment variables, connections.
import type { Interceptor } from "@connectrpc/connect";
import type { Random } from "../concurrency/random.ts";
import type { Link } from "../control-plane/transport.ts";
import type { AnyKind } from "../kinds/kinds.ts";
import type { CredentialDeps } from "../kube/credentials.ts";
import type { HttpTransportOptions } from "../kube/http-transport.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { LifecycleStep } from "../runtime/lifecycle.ts";
import type { ServedService } from "../services/served-services.ts";
import type { Log } from "../telemetry/log.ts";
import type { BuildInfo } from "../telemetry/metrics.ts";
import type { OpenVault } from "../vault/vault.ts";

export interface AgentDeps extends CredentialDeps {
  readonly random: Random;
  readonly log: Log;
  readonly build: BuildInfo;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Instead of sockets; absent outside of simulations. */
  readonly network?: AgentNetwork;
  /** Called once, when everything has started. */
  onStarted?(): void;
}

/** The connections of an agent that is simulated with its peers in one process. It then observes no process metrics. */
export interface AgentNetwork {
  /** What the agent manages, with controllers that load without reading a file. */
  readonly kinds: readonly AnyKind[];
  connectKube(options: HttpTransportOptions): KubeTransport;
  connectControlPlane(controller: string, interceptors: readonly Interceptor[]): Link;
  connectVault(): OpenVault;
  /** Instead of the RPC port. */
  serve(services: readonly ServedService[]): LifecycleStep;
}
