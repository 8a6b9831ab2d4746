// The checks that every store makes before a change, with the same errors.
import { type ApplyMessage, type KindName, kindOf } from "../kinds/kinds.ts";
import { createSpec, encodeSpec } from "./kind-messages.ts";
import { type Condition, type Decide, type PutOptions, type Row, StoreError, type Wanted } from "./store.ts";

export interface IdentityFacts {
  /** The row of this kind that has the name in the spec; undefined if no row has it. */
  readonly nameHolder: string | undefined;
  /** The name of the row with this id; undefined without a row. */
  readonly nameBefore: string | undefined;
}

export function checkIdentity<K extends KindName>(
  kind: K,
  id: string,
  spec: ApplyMessage<K>,
  { nameHolder, nameBefore }: IdentityFacts,
): void {
  const { idOf, uniqueNameOf } = kindOf(kind);
  const name = uniqueNameOf(spec);
  if (id === "" || spec.k8sName === "" || idOf(spec) !== id) {
    throw new StoreError("incomplete", `a ${kind} needs an id and a name that never change`);
  }
  if (nameHolder !== undefined && nameHolder !== id) {
    throw new StoreError("name_taken", `${kind} ${nameHolder} already has the name ${name}`);
  }
  if (nameBefore !== undefined && nameBefore !== name) {
    throw new StoreError("name_changed", `${kind} ${id} is called ${nameBefore}, not ${name}`);
  }
}

/** Sets the spec, whatever was stored before. */
export function putting<K extends KindName>(spec: ApplyMessage<K>, options: PutOptions = {}): Decide<K> {
  const { deploymentId } = options;
  return (row) => {
    checkVersion(row, options);
    return { spec, desired: "running", ...(deploymentId !== undefined && { deploymentId }) };
  };
}

export function editing<K extends KindName>(
  kind: K,
  change: (spec: ApplyMessage<K>) => ApplyMessage<K>,
  condition: Condition = {},
): Decide<K> {
  return (row) =>
    rewrite(kind, row, condition, (wanted) => {
      // A copy: if the spec were edited in place, the row would look unchanged.
      const spec = createSpec(kind, wanted.spec);
      return { ...wanted, spec: change(spec) };
    });
}

export function stopping<K extends KindName>(kind: K, condition: Condition = {}): Decide<K> {
  return (row) => rewrite(kind, row, condition, (wanted) => ({ ...wanted, desired: "stopped" }));
}

function rewrite<K extends KindName>(
  kind: K,
  row: Row<K> | undefined,
  condition: Condition,
  next: (wanted: Wanted<K>) => Wanted<K>,
): Wanted<K> | undefined {
  checkVersion(row, condition);
  if (row === undefined) return undefined;
  const { spec, desired, deploymentId, appId } = row;
  if (desired === "unreadable") throw unreadable(kind, row.id);
  const owners = {
    ...(deploymentId !== undefined && { deploymentId }),
    ...(appId !== undefined && { appId }),
  };
  return next({ spec, desired, ...owners });
}

export function checkVersion(
  at: { readonly version: bigint; readonly desired?: Row<KindName>["desired"] } | undefined,
  { expectedVersion }: Condition,
): void {
  const version = at?.version ?? 0n;
  if (expectedVersion === undefined || expectedVersion === version) return;
  // Most callers can no longer see a stopped object and should not be told to look at it.
  if (expectedVersion === 0n && at?.desired === "stopped") return;
  const found = at === undefined ? "it does not exist" : `it is at version ${version}`;
  throw new StoreError("version_mismatch", `${found}, not at version ${expectedVersion}; read it again`);
}

/** Whether a change would leave the row as it is, byte for byte. */
export function isSame<K extends KindName>(kind: K, row: Row<K>, wanted: Wanted<K>): boolean {
  if (row.desired !== wanted.desired || row.deploymentId !== wanted.deploymentId) return false;
  if (row.appId !== wanted.appId) return false;
  return Buffer.compare(encodeSpec(kind, row.spec), encodeSpec(kind, wanted.spec)) === 0;
}

export function unreadable(kind: KindName, id: string): StoreError {
  return new StoreError("unreadable", `${kind} ${id} was written by a newer server and can only be replaced`);
}

export function unknownRegion(region: string): StoreError {
  return new StoreError(
    "unknown_region",
    `region ${region} is not registered; add a token for it to server.agent_tokens`,
  );
}
