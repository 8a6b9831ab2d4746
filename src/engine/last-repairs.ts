// The last repairs of a controller, for its status. The control plane puts them into the history of the objects that they belong to.
import { create } from "@bufbuild/protobuf";
import type { Clock } from "../concurrency/clock.ts";
import { type Repair, RepairSchema } from "../gen/krane/v1/agent_pb.ts";
import type { EventSubject } from "./object-events.ts";

const repairsMax = 20;
const reasonCharsMax = 500;

export interface LastRepairsDeps {
  readonly clock: Pick<Clock, "wallMs">;
  /** The object of desired state with a key, and the version that is applied; undefined if there is none. */
  find(key: string): { readonly id?: string | undefined; readonly version: bigint } | undefined;
}

export class LastRepairs {
  private readonly deps: LastRepairsDeps;
  private repairs: readonly Repair[] = [];
  private count = 0n;

  constructor(deps: LastRepairsDeps) {
    this.deps = deps;
  }

  /** Oldest first. */
  list(): readonly Repair[] {
    return this.repairs;
  }

  add(key: string | undefined, { kind, ref }: EventSubject, reason: string): void {
    const { id = "", version = 0n } = (key === undefined ? undefined : this.deps.find(key)) ?? {};
    this.count += 1n;
    const repair = create(RepairSchema, {
      number: this.count,
      atMs: BigInt(Math.round(this.deps.clock.wallMs())),
      ...{ key: key ?? "", id, version },
      ...{ kind: kind.kind, name: ref.name, reason: reason.slice(0, reasonCharsMax) },
    });
    this.repairs = [...this.repairs, repair].slice(-repairsMax);
  }
}
