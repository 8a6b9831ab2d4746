// The common changes of desired state, built on the one change that every store implements.
import { type ApplyMessage, type KindName, kindOf } from "../kinds/kinds.ts";
import { editing, putting, stopping } from "./row-rules.ts";
import type { Author, Changed, ChangeOptions, Condition, Decide, PutOptions, Store } from "./store.ts";

export abstract class DesiredChanges implements Pick<Store, "put" | "edit" | "stop"> {
  abstract change<K extends KindName>(
    region: string,
    kind: K,
    id: string,
    decide: Decide<K>,
    author: Author,
    options?: ChangeOptions,
  ): Promise<Changed<K>>;

  async put<K extends KindName>(
    region: string,
    kind: K,
    spec: ApplyMessage<K>,
    author: Author,
    options?: PutOptions,
  ): Promise<bigint> {
    const { after } = await this.change(
      region,
      kind,
      kindOf(kind).idOf(spec),
      putting(spec, options),
      author,
    );
    return after?.version ?? 0n;
  }

  async edit<K extends KindName>(
    region: string,
    kind: K,
    id: string,
    change: (spec: ApplyMessage<K>) => ApplyMessage<K>,
    author: Author,
    condition?: Condition,
  ): Promise<bigint | undefined> {
    return (await this.change(region, kind, id, editing(kind, change, condition), author)).after?.version;
  }

  async stop(
    region: string,
    kind: KindName,
    id: string,
    author: Author,
    condition?: Condition,
  ): Promise<bigint | undefined> {
    return (await this.change(region, kind, id, stopping(kind, condition), author)).after?.version;
  }
}
