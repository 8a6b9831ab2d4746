// What the agent tells the control plane about itself: that it lives, and how it is doing.
// It has a connection of its own, so that a controller in trouble cannot silence it (K6).
import type { Config } from "../config/config.ts";
import { runHeartbeat } from "../control-plane/heartbeat.ts";
import type { Step } from "../runtime/lifecycle.ts";
import type { AgentDeps } from "./agent-deps.ts";
import { loadControlPlane } from "./control-plane-access.ts";
import type { ControllerParts } from "./controller-step.ts";
import { startAgentLoop } from "./loops.ts";
import { runStateReports } from "./state-reports.ts";

export function upstreamStep(
  config: Config,
  { view, metrics, tracing }: ControllerParts,
  agentDeps: AgentDeps,
): Step {
  return {
    name: "heartbeat and state reports",
    async start(signal) {
      const deps = { ...agentDeps, metrics, spans: tracing.spans };
      const { heartbeat, reportAgentState, close } = await loadControlPlane(config, "agent", deps, signal);
      const loops = [
        startAgentLoop("heartbeat", (running) => runHeartbeat(heartbeat, deps, running), deps),
        startAgentLoop(
          "state reports",
          (running) => runStateReports({ ...deps, view, send: reportAgentState }, running),
          deps,
        ),
      ];
      return {
        async stop(hurry) {
          await Promise.all(loops.map((loop) => loop.stop(hurry)));
          await close();
        },
      };
    },
  };
}
