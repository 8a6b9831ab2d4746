// Which kinds an agent serves, by the state that it reports. One of an older version has no controller for newer kinds.
import { type AgentStatus, StreamStatus_State as State } from "../gen/krane/v1/agent_pb.ts";
import { type KindName, kindOf } from "../kinds/kinds.ts";

/** False for an agent that has not reported a state. */
export function servesKind(kind: KindName, state: AgentStatus | undefined): boolean {
  const { controller } = kindOf(kind);
  const found = state?.controllers.find(({ name }) => name === controller);
  return found !== undefined && found.stream?.state !== State.UNSUPPORTED;
}
