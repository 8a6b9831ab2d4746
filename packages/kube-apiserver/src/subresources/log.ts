// Handles pods/<name>/log. Pods run no containers here, so that there is no output: the log says so, and why a container
// stopped, instead of failing as if the pod did not exist.
import type { Pod } from "kubernetes-types/core/v1.js";
import type { Scope } from "../core.ts";
import { badRequest } from "../status-error.ts";
import { liveObject } from "../update.ts";

export function readLog(scope: Scope): string {
  const { spec, status } = liveObject(scope) as unknown as Pod;
  const names = (spec?.containers ?? []).map(({ name }) => name);
  const asked = scope.request.query?.["container"] ?? names[0] ?? "";
  if (!names.includes(asked)) {
    throw badRequest(`container ${asked} is not valid for pod ${scope.name}`);
  }
  const state = status?.containerStatuses?.find(({ name }) => name === asked);
  const ended = state?.lastState?.terminated ?? state?.state?.terminated;
  const fate = ended === undefined ? "" : `; its simulated program ended with exit code ${ended.exitCode}`;
  return `this cluster is simulated and runs no containers, so ${asked} has no output${fate}\n`;
}
