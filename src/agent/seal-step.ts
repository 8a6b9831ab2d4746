// Loads the seal before the controllers start, with credentials and connections of its own. An agent without a seal could
// not tell its own objects from those of others, so it does not start.
import { DeadlineError, withTimeout } from "../concurrency/abort.ts";
import { sleep } from "../concurrency/clock.ts";
import type { Config } from "../config/config.ts";
import { classifyFailure } from "../engine/classify.ts";
import { loadSeal, sealSecretName } from "../engine/seal-keys.ts";
import { createKubeApi } from "../kube/client.ts";
import type { Seal } from "../model/seal.ts";
import type { LifecycleStep } from "../runtime/lifecycle.ts";
import type { AgentDeps } from "./agent-deps.ts";
import { AgentError } from "./agent-error.ts";
import { connectKube, loadClusterAccess } from "./cluster-access.ts";
import { startTimeoutMs } from "./controllers.ts";
import { createAgentSecret } from "./secrets.ts";

export interface SealPart {
  readonly step: LifecycleStep;
  /** Undefined until the step has run. */
  current(): Seal | undefined;
}

const retryMs = 1_000;
const attemptMs = 5_000;

export function createSealPart(config: Config, deps: AgentDeps): SealPart {
  let seal: Seal | undefined;
  const step: LifecycleStep = {
    name: "seal",
    async start(signal) {
      const { endpoint, stateNamespace: namespace } = await loadClusterAccess(config, deps, signal);
      const keys =
        config.sealKeys && (await createAgentSecret(config.sealKeys, deps).current(signal)).reveal();
      const userAgent = `krane/${deps.build.version}`;
      const transport = connectKube({ endpoint, connections: 1, userAgent }, deps);
      const api = createKubeApi(transport);
      const source = { region: regionOf(config), namespace, keys };
      let lastFailure: unknown;
      try {
        seal = await withTimeout(deps.clock, startTimeoutMs, signal, async (limited) => {
          for (;;) {
            try {
              return await withTimeout(deps.clock, attemptMs, limited, (one) => loadSeal(source, api, one));
            } catch (error) {
              limited.throwIfAborted();
              // The API server may be restarting too, or a request may be lost.
              const isPassing = error instanceof DeadlineError || classifyFailure(error)?.kind === "retry";
              if (!isPassing) throw error;
              lastFailure = error;
              await sleep(deps.clock, retryMs, limited);
            }
          }
        });
      } catch (error) {
        signal.throwIfAborted();
        const cause = error instanceof DeadlineError ? (lastFailure ?? error) : error;
        const reason = cause instanceof Error ? cause.message : String(cause);
        const what = keys === undefined ? `the seal (Secret ${namespace}/${sealSecretName})` : "the seal";
        const message = `Kubernetes at ${endpoint.server}: cannot load ${what}: ${reason}`;
        throw new AgentError("start_failed", message, { cause });
      } finally {
        await transport.close();
      }
      deps.log.info("seal loaded", { keyId: seal.keyId });
      return undefined;
    },
  };
  return { step, current: () => seal };
}

/** The same for `region = "us-east-1.aws"` and for a region and a platform that are set apart. */
export function regionOf({ region: { name, platform } }: Config): string {
  return platform === "" ? name : `${name}.${platform}`;
}
