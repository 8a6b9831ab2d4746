// Recognises a control plane of another protocol version, such as later ones of the original: it has none of the streams.
// It may have a Heartbeat that fits, and would take this agent for alive, although the agent cannot receive an order. So
// heartbeats wait until the control plane has accepted a state report, which only krane's own has, or a stream is open.
import { type Clock, sleep } from "../concurrency/clock.ts";
import type { ReportAgentStateResponse } from "../gen/ctrl/v1/cluster_service_pb.ts";
import { type ControllerStatus, StreamStatus_State as State } from "../gen/krane/v1/agent_pb.ts";
import type { Log } from "../telemetry/log.ts";

/** For `krane status`, and for the log. */
export const otherVersionWarning =
  "the control plane speaks another version of the protocol: nothing is applied, reported or deleted";

/** Whether no stream is open, and the control plane has none of them. */
export function hasOtherVersion(controllers: readonly ControllerStatus[]): boolean {
  const isMissing = ({ stream }: ControllerStatus) =>
    stream?.state !== State.OPEN && stream?.lastErrorCode === "unimplemented";
  return controllers.length > 0 && controllers.every(isMissing);
}

export interface PeerVersionDeps {
  readonly view: { controllerStatuses(): readonly ControllerStatus[] };
  readonly clock: Clock;
  readonly log: Log;
}

const lookEveryMs = 500;

export class PeerVersion {
  private readonly deps: PeerVersionDeps;
  private hasAcceptedState = false;
  private isLogged = false;

  constructor(deps: PeerVersionDeps) {
    this.deps = deps;
  }

  /** Notes the response to a state report; undefined if the control plane does not have the RPC. */
  noteResponse(response: ReportAgentStateResponse | undefined): typeof response {
    this.hasAcceptedState = response !== undefined;
    return response;
  }

  /** Resolves when heartbeats may be sent. */
  async whenKnown(signal: AbortSignal): Promise<void> {
    const { view, clock, log } = this.deps;
    while (!this.hasAcceptedState) {
      const controllers = view.controllerStatuses();
      if (controllers.some(({ stream }) => stream?.state === State.OPEN)) break;
      if (hasOtherVersion(controllers) && !this.isLogged) {
        log.error(otherVersionWarning, {
          remedy: "check control.url, or use a control plane of the version in docs/protocol.md",
        });
        this.isLogged = true;
      }
      await sleep(clock, lookEveryMs, signal);
    }
    this.isLogged = false;
  }
}
