// Wires the forwarding of calls from a standby to the leader, and the port's route for the leader's proof.
import type { Config } from "../config/config.ts";
import type { HttpHandler } from "../http/http-handler.ts";
import type { LifecycleStep } from "../runtime/lifecycle.ts";
import type { ForwardCall } from "../services/leader-calls.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { AgentDeps } from "./agent-deps.ts";
import { type AnnouncedSettings, leaderOf, ownAnnouncement } from "./leader-announcement.ts";
import { LeaderLink } from "./leader-link.ts";
import { createLeaderProof, leaderProofPath, leaderProofRoute } from "./leader-proof.ts";
import type { LeasePart } from "./lease-step.ts";
import type { SealPart } from "./seal-step.ts";

export interface ForwardingPart {
  readonly forward: ForwardCall;
  readonly routes: ReadonlyMap<string, HttpHandler>;
  /** Closes the connection to the leader when it stops. */
  readonly step: LifecycleStep;
}

export function createForwarding(
  config: AnnouncedSettings & Pick<Config, "tls">,
  { lease, seal, metrics }: { readonly lease: LeasePart; readonly seal: SealPart; readonly metrics: Metrics },
  { clock }: Pick<AgentDeps, "clock">,
): ForwardingPart {
  const link = new LeaderLink({
    clock,
    leader: () => leaderOf(lease.status()?.holder, config),
    proof() {
      const keys = seal.current();
      return keys && createLeaderProof(keys);
    },
    onCall: (result) => metrics.forwardedCalls.inc({ result }),
  });
  const route = leaderProofRoute(
    () => ownAnnouncement(config, lease.identity),
    () => seal.current(),
  );
  return {
    forward: link.forward,
    routes: new Map([[leaderProofPath, route]]),
    step: {
      name: "forwarding",
      start: async () => ({ stop: () => link.close() }),
    },
  };
}
