// How a healthcheck becomes a probe. Liveness and readiness get the same one, as the platform documents.
import type { Probe } from "kubernetes-types/core/v1.js";
import type { Healthcheck } from "./healthcheck.ts";

export function desiredProbe(healthcheck: Healthcheck, port: number): Probe {
  return { ...probeAction(healthcheck, port), ...probeTimes(healthcheck) };
}

// The kubelet can only GET. A POST is sent from inside the container, by a wget that the image has to
// bring along; the arguments reach it without a shell in between.
function probeAction({ method, path }: Healthcheck, port: number): Probe {
  if (method === "GET") return { httpGet: { path, port } };
  return { exec: { command: ["wget", "--spider", "--post-data=", "-q", `http://localhost:${port}${path}`] } };
}

/** What is 0 is left out, and Kubernetes fills in its default. */
function probeTimes(healthcheck: Healthcheck): Probe {
  const { intervalSeconds, timeoutSeconds, failureThreshold, initialDelaySeconds } = healthcheck;
  return {
    ...(initialDelaySeconds > 0 && { initialDelaySeconds }),
    ...(intervalSeconds > 0 && { periodSeconds: intervalSeconds }),
    ...(timeoutSeconds > 0 && { timeoutSeconds }),
    ...(failureThreshold > 0 && { failureThreshold }),
  };
}
