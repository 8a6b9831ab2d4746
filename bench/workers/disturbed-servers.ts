// The servers of the disturbed controller, in a separate process: the other two share the agent with it, but neither
// API server nor control plane. On command these fail, hang, flood and send bad data.
import { constants, setPriority } from "node:os";
import type { WholeResponse } from "@krane/kube-apiserver";
import type { ApplyDeployment } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { applyState } from "../../src/server/kind-messages.ts";
import { createFaultyCalls, FaultSwitch, type FaultyPeer } from "../../test/simulation/faulty-parts.ts";
import { applyDeployment } from "../../test/support/deployment-messages.ts";
import { serveCommands } from "../isolation/commands.ts";
import { type Addresses, regionKey, startServers } from "../isolation/servers.ts";
import { takeTask, tellParent } from "./parent.ts";

export type DisturbCommand =
  /** Nothing of the peer works. */
  | { readonly do: "errors" | "hangs"; readonly peer: FaultyPeer }
  | { readonly do: "change all" }
  | { readonly do: "flood"; readonly messages: number }
  | { readonly do: "poison"; readonly messages: number }
  | { readonly do: "end" };

export interface DisturbedFacts {
  readonly addresses: Addresses;
  readonly commands: string;
}

export interface DisturbedTask {
  readonly keys: number;
}

// It stands for remote machines, and must not take CPU time from what is measured.
setPriority(constants.priority.PRIORITY_LOW);

const changeEveryMs = 25;
const { keys } = takeTask<DisturbedTask>();
const calls = new FaultSwitch();
const added = new FaultSwitch();
const never = new AbortController().signal;
const servers = await startServers(
  [
    createFaultyCalls({ cilium: calls, deployments: calls, sentinels: calls }),
    (next) => async (request) => {
      const response = await next(request);
      if (!response.stream) return response;
      const message = added.through(response.message, async (fault) =>
        fault.kind === "messages" ? (fault.states as Iterable<never>) : [],
      );
      return { ...response, message };
    },
  ],
  never,
);
const { server, plane } = servers;
let generation = 0;
let isFlooding = false;
let turn = 0;
let restore = (): void => undefined;

const broken: WholeResponse = {
  kind: "whole",
  status: 500,
  body: { kind: "Status", code: 500, reason: "InternalError", message: "out of order" },
};

async function handle(command: DisturbCommand): Promise<void> {
  switch (command.do) {
    case "change all":
      return changeAll();
    case "errors":
    case "hangs":
      if (command.peer === "control plane") calls.begin({ kind: command.do, peer: command.peer });
      else failKubernetes(command.do);
      return;
    case "flood":
      return bring(command.messages, (spec) => spec);
    case "poison":
      return bring(command.messages, (spec, nth) =>
        nth % 2 === 0 ? { ...spec, port: 70_000 } : { ...spec, k8sNamespace: "kube-system" },
      );
    case "end":
      isFlooding = false;
      calls.end();
      added.end();
      restore();
  }
}

function failKubernetes(kind: "errors" | "hangs"): void {
  restore = server.faults.intercept(() => (kind === "hangs" ? "hang" : broken));
  server.faults.closeWatches();
}

async function changeAll(): Promise<void> {
  generation += 1;
  for (let key = 0; key < keys; key++)
    await plane.admin.setDeployment(regionKey.label, specOf(key, generation));
}

/** Their versions are taken out of the region's numbering; nothing of them is kept. */
async function bring(
  messages: number,
  change: (spec: ApplyDeployment, nth: number) => ApplyDeployment,
): Promise<void> {
  isFlooding = true;
  const base = await plane.admin.setDeployment(regionKey.label, specOf(0, generation));
  plane.faults.setCounter(regionKey.label, base + BigInt(messages));
  const states = (function* () {
    for (let nth = 0; nth < messages; nth++) {
      const spec = specOf(nth % keys, generation + 1 + Math.floor(nth / keys));
      yield applyState("deployment", change(spec, nth), base + BigInt(nth + 1));
    }
  })();
  added.begin({ kind: "messages", states });
  generation += Math.ceil(messages / keys);
}

function specOf(key: number, ofGeneration: number): ApplyDeployment {
  return applyDeployment({
    k8sName: `web-${key}`,
    deploymentId: `d_${key}`,
    image: `registry.example/acme/web:${ofGeneration}`,
    replicas: 0,
  });
}

// It has work with and without a failure. A change amid a flood would be newer than all of it.
setInterval(() => {
  if (isFlooding || generation === 0) return;
  turn += 1;
  void plane.admin.setDeployment(regionKey.label, specOf(turn % keys, generation + turn));
}, changeEveryMs);

const facts: DisturbedFacts = {
  addresses: servers.addresses,
  commands: await serveCommands<DisturbCommand>(handle),
};
tellParent(facts);
