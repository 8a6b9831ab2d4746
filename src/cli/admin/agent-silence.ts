// Whether the agent of a command's region is silent. What it reported last is then shown with its age, not as the present.
import { create, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { AgentViewSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { heardAtMs, isSilent } from "../../why/silence.ts";
import { ageOf } from "../terminal/age.ts";
import type { Admin } from "./admin-access.ts";

export interface AgentHeard {
  /** 0 for never. */
  readonly heardAtMs: bigint;
  readonly isSilent: boolean;
  /** How long ago, in words; undefined unless it is silent, and for an agent that never connected. */
  readonly silence: string | undefined;
}

export async function loadAgentHeard({ client, region, signal }: Admin): Promise<AgentHeard> {
  // Comes with the server's time, because this machine's clock may be off.
  const { agents, nowMs } = await client.listAgents({ region }, { signal });
  const agent = agents.find((each) => each.region === region) ?? create(AgentViewSchema, { region });
  const atMs = heardAtMs(agent);
  const silent = isSilent(agent, Number(nowMs));
  const silence = silent && atMs > 0n ? ageOf(atMs, Number(nowMs)) : undefined;
  return { heardAtMs: atMs, isSilent: silent, silence };
}

/** Programs have to know it too: the phases are those of the agent's last report. */
export function withHeard(json: JsonValue, { heardAtMs, isSilent }: AgentHeard): JsonObject {
  return { ...(json as JsonObject), agentHeardAtMs: String(heardAtMs), agentSilent: isSilent };
}
