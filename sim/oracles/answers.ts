// K14: what the leader answers through AgentService. An object that it calls applied is there with that version, and one
// that it calls deleted is not, or it says something else soon.
import {
  AgentService,
  ObjectStatus_Desired as Desired,
  type ObjectStatus,
  ObjectStatus_Outcome as Outcome,
  LeaseStatus_Role as Role,
} from "../../src/gen/krane/v1/agent_pb.ts";
import { kindOfController } from "../../src/kinds/kinds.ts";
import { orderBehind } from "../ledger.ts";
import { agentToken, type SimAgent } from "../sim-agent.ts";
import { region } from "../sim-region.ts";
import type { World } from "../world.ts";
import { placesOfKinds } from "./audit-view.ts";

const askEveryMs = 30_000;
// Several faults in a row may keep an agent from seeing a change: a right that is revoked, an API server that is down.
const falseMaxMs = 600_000;
const headers = { authorization: `Bearer ${agentToken}` };
const pageSize = 1_000;

/** Their objects show which order they come from. */
const numberedKinds = ["deployment", "sentinel", "policy"] as const;

/** Asks by itself, every half minute. */
export class AnswersOracle {
  private readonly world: World;
  /** Since when a process has given a false answer about an object. */
  private readonly falseSince = new Map<string, number>();

  constructor(world: World) {
    this.world = world;
  }

  start(): void {
    this.world.clock.setTimer(askEveryMs, () => {
      if (this.world.violation !== undefined || this.world.isOver) return;
      for (const agent of this.world.agents) void this.ask(agent);
      this.start();
    });
  }

  private async ask(agent: SimAgent): Promise<void> {
    const name = agent.process?.name ?? "";
    const objects = await objectsOfLeader(agent);
    if (agent.process?.name !== name) return;
    const rows = await this.rowNumbers();
    for (const object of objects ?? []) this.judge(name, object, rows);
  }

  /** The number of the order behind each version that a row has now. */
  private async rowNumbers(): Promise<ReadonlyMap<string, number>> {
    const numbers = new Map<string, number>();
    for (const kind of numberedKinds)
      for (const { id, version, spec } of await this.world.plane.store.rows(region, kind))
        numbers.set(`${kind} ${id} ${version}`, this.world.numberIn(kind, spec));
    return numbers;
  }

  private judge(agent: string, object: ObjectStatus, rows: ReadonlyMap<string, number>): void {
    const kind = kindOfController(object.controller)?.name;
    if (kind === undefined || object.id === "") return;
    const key = `${agent} ${kind} ${object.key}`;
    const lie = this.lieIn(kind, object, rows);
    if (lie === undefined) {
      this.falseSince.delete(key);
      return;
    }
    const nowMs = this.world.clock.nowMs();
    const sinceMs = this.falseSince.get(key) ?? nowMs;
    this.falseSince.set(key, sinceMs);
    if (nowMs - sinceMs > falseMaxMs)
      this.world.violate("K14", `${agent} says for ${(nowMs - sinceMs) / 1_000} s that ${lie}`);
  }

  private lieIn(
    kind: keyof typeof placesOfKinds,
    { id, key, outcome, desired, appliedVersion }: ObjectStatus,
    rows: ReadonlyMap<string, number>,
  ): string | undefined {
    const [plural, group] = placesOfKinds[kind];
    const [namespace = "", name = ""] = key.split("/");
    const live = this.world.cluster.get(plural, group, namespace, name);
    const isThere = live !== undefined && this.world.isOfAgents(live);
    if (outcome === Outcome.DELETED)
      return isThere && orderBehind(plural, live)?.id === id ? `${kind} ${id} is deleted` : undefined;
    if (desired !== Desired.APPLY || (outcome !== Outcome.APPLIED && outcome !== Outcome.UNCHANGED))
      return undefined;
    if (!isThere) return `${kind} ${id} is applied, which is missing`;
    // Without versions in responses, one may be left over from before the control plane was restored.
    const number = this.world.sendsVersions ? rows.get(`${kind} ${id} ${appliedVersion}`) : undefined;
    const found = orderBehind(plural, live)?.number;
    return number === undefined || number === found
      ? undefined
      : `${kind} ${id} has version ${appliedVersion}, order ${number}; it has order ${found}`;
  }
}

/** What an agent answers about its objects; undefined if it does not lead, or does not answer. */
export async function objectsOfLeader(agent: SimAgent): Promise<readonly ObjectStatus[] | undefined> {
  const client = agent.client(AgentService);
  if (client === undefined || agent.process?.isStalled === true) return undefined;
  try {
    const { status } = await client.getStatus({}, { headers });
    if (status?.lease?.role !== Role.LEADER) return undefined;
    return (await client.listObjects({ pageSize }, { headers })).objects;
  } catch {
    // It is stopping.
    return undefined;
  }
}
