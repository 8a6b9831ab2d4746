// A control plane over h2c with a region of many deployments, in a process of its own, so that its CPU and traffic are
// those of the calls that are measured.
import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { Code, type Interceptor } from "@connectrpc/connect";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { Secret } from "../../src/config/secret.ts";
import type { ReportAgentStateRequest } from "../../src/gen/ctrl/v1/cluster_service_pb.ts";
import { createControlPlaneServer } from "../../src/server/control-plane-server.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { createTestPlane } from "../../test/support/store-admin.ts";
import { sampleDeployment } from "../deployments/sample-set.ts";
import { serveCommands } from "../isolation/commands.ts";
import { controlToken, regionKey } from "../isolation/servers.ts";
import { takeTask, tellParent } from "./parent.ts";
import { cpuSeconds } from "./resources.ts";

export interface ScalePlaneTask {
  readonly namespaces: number;
}

export interface ScalePlaneFacts {
  readonly url: string;
  readonly commands: string;
}

export type ScalePlaneCommand =
  /** Sets the deployments from `from` to below `to`. */
  | { readonly do: "set"; readonly from: number; readonly to: number; readonly tag: string }
  /** Streams stay open and bring nothing; notifications meanwhile are lost to whoever compares. */
  | { readonly do: "pause" }
  | { readonly do: "resume" }
  /** Every call about digests fails, so that agents request every object. */
  | { readonly do: "refuse digests" }
  | { readonly do: "figures" };

export interface PlaneFigures {
  readonly cpuSeconds: number;
  readonly bytes: number;
  /** By the name of the RPC, without streams. */
  readonly calls: Readonly<Record<string, number>>;
  /** How often a digest of deployments was requested. */
  readonly digests: number;
  /** The newest version that was set. */
  readonly version: string;
  /** Up to which an agent has said that it has applied everything; "" before its first report. */
  readonly settled: string;
  /** Keys that its queues hold. */
  readonly busy: number;
  /** Deployments that agents have reported, once for each report. */
  readonly reports: number;
}

const { namespaces } = takeTask<ScalePlaneTask>();
const set = { name: "scale", namespaces, deployments: 0 };
const calls: Record<string, number> = {};
const sockets = new Set<Socket>();
let closedBytes = 0;
let digests = 0;
let version = 0n;
let settled = "";
let busy = 0;
let reports = 0;

subscribe("net.server.socket", (message) => {
  const { socket } = message as { readonly socket: Socket };
  sockets.add(socket);
  socket.once("close", () => {
    sockets.delete(socket);
    closedBytes += bytesOf(socket);
  });
});

function bytesOf({ bytesRead, bytesWritten }: Socket): number {
  return bytesRead + bytesWritten;
}

const count: Interceptor = (next) => (request) => {
  const { name } = request.method;
  calls[name] = (calls[name] ?? 0) + 1;
  if (request.stream) return next(request);
  if (name === "GetDesiredDigest" && Reflect.get(request.message, "kind") === "deployment") digests += 1;
  if (name === "ReportDeploymentStatus") reports += 1;
  if (name === "ReportDeploymentStatuses")
    reports += (Reflect.get(request.message, "entries") as unknown[]).length;
  if (name === "ReportAgentState") noteState(request.message as ReportAgentStateRequest);
  return next(request);
};

function noteState({ state }: ReportAgentStateRequest): void {
  const of = state?.controllers.find(({ name }) => name === "deployments");
  settled = String(of?.stream?.settledUpTo ?? "");
  busy = (of?.queue?.waiting ?? 0) + (of?.queue?.inFlight ?? 0) + (of?.stream?.unsettled.length ?? 0);
}

const deps = {
  clock: createSystemClock(),
  log: createQuietLog(),
  readTextFile: () => Promise.reject(new Error("no file is needed")),
};
const plane = createTestPlane({ tokens: [new Secret(controlToken)], interceptors: [count] }, deps);
await plane.admin.registerRegion(regionKey.label);
const { url } = await createControlPlaneServer(plane, { port: 0 }, deps).start(new AbortController().signal);

async function handle(command: ScalePlaneCommand): Promise<PlaneFigures | undefined> {
  switch (command.do) {
    case "set":
      for (let index = command.from; index < command.to; index++)
        version = await plane.admin.setDeployment(
          regionKey.label,
          sampleDeployment(set, index, { tag: command.tag, replicas: 2 }),
        );
      return undefined;
    case "pause":
      plane.faults.pauseStreams();
      return undefined;
    case "resume":
      plane.faults.heal();
      return undefined;
    case "refuse digests":
      plane.faults.failNext("getDesiredDigest", Code.Unavailable, Number.POSITIVE_INFINITY);
      return undefined;
    case "figures":
      return {
        cpuSeconds: cpuSeconds(),
        bytes: [...sockets].reduce((sum, socket) => sum + bytesOf(socket), closedBytes),
        calls: { ...calls },
        digests,
        version: String(version),
        settled,
        busy,
        reports,
      };
  }
}

const facts: ScalePlaneFacts = { url, commands: await serveCommands(handle) };
tellParent(facts);
