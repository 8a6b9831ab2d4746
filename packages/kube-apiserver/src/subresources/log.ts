// Handles pods/<name>/log. Pods run no containers here, so that there is no output: the log says so, and why a container
// stopped, instead of failing as if the pod did not exist. A log that is followed stays open until its pod is deleted.
import type { Pod } from "kubernetes-types/core/v1.js";
import { keyOf, type Scope, timestampOf } from "../core.ts";
import type { StreamResponse, WholeResponse } from "../request.ts";
import { badRequest } from "../status-error.ts";
import { liveObject } from "../update.ts";

export function openLog(scope: Scope): StreamResponse | WholeResponse {
  const { query = {} } = scope.request;
  const time = query["timestamps"] === "true" ? `${timestampOf(scope.core)} ` : "";
  const text = `${time}${readLog(scope)}`;
  if (query["follow"] !== "true") return { kind: "whole", status: 200, body: text };
  return followLog(scope, text);
}

function readLog(scope: Scope): string {
  const { spec, status } = liveObject(scope) as unknown as Pod;
  const names = (spec?.containers ?? []).map(({ name }) => name);
  const asked = scope.request.query?.["container"] ?? names[0] ?? "";
  if (!names.includes(asked)) {
    throw badRequest(`container ${asked} is not valid for pod ${scope.name}`);
  }
  const state = status?.containerStatuses?.find(({ name }) => name === asked);
  const ended = state?.lastState?.terminated ?? state?.state?.terminated;
  const fate = ended === undefined ? "" : `; its simulated program ended with exit code ${ended.exitCode}`;
  return `this cluster is simulated and runs no containers, so container ${asked} has no output${fate}\n`;
}

function followLog(scope: Scope, text: string): StreamResponse {
  const { store, watches } = scope.core;
  const { namespace, plural, group } = keyOf(scope);
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const closing = [
    watches.add({ path: scope.request.path, close: () => close() }),
    store.subscribe(({ key, removed }) => {
      const isPod = key.plural === plural && key.group === group && key.namespace === namespace;
      if (removed && isPod && key.name === scope.name) close();
    }),
  ];
  const close = (): void => {
    for (const step of closing.splice(0)) step();
    end();
  };
  return { kind: "stream", isText: true, values: textUntil(text, ended), close };
}

async function* textUntil(text: string, ended: Promise<void>): AsyncGenerator<string> {
  yield text;
  await ended;
}
