// krane scale: changes the number of pods of an object, and nothing else.
import { ObjectView_Desired as Desired } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Admin } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { waitAndTell } from "./command-wait.ts";
import { objectKindOf, parseObjectName, scaledKinds } from "./object-names.ts";
import { findObject, titleOf } from "./object-search.ts";

export interface ScaleOptions {
  readonly replicas: number;
  readonly ifVersion?: bigint;
  readonly wait?: true;
  readonly timeout: number;
}

export async function scaleObject(
  admin: Admin,
  io: Io,
  what: { readonly kind: string; readonly name: string | undefined },
  { replicas, ifVersion, wait, timeout }: ScaleOptions,
): Promise<number> {
  const { kind, name } = parseObjectName(what.kind, what.name, scaledKinds);
  if (name === undefined)
    throw new CommandError("usage", `which ${kind}? krane scale ${kind} ID --replicas N`);
  const { object } = await findObject(admin, name, objectKindOf(kind));
  const { ref } = object;
  const title = titleOf(ref);
  if (ref === undefined || object.desired === Desired.STOPPED)
    throw new CommandError("not_found", `${title} is deleted or being deleted; apply it again first`);
  const expected = ifVersion === undefined ? {} : { expectedVersion: ifVersion };
  const { client, signal, paint } = admin;
  const { version, replicasBefore } = await client.scaleObject({ ref, replicas, ...expected }, { signal });
  const change =
    replicasBefore === replicas
      ? `${paint("unchanged", "faint")} at ${replicas}`
      : `${paint("scaled", "good")} from ${replicasBefore} to ${replicas}`;
  io.stdout.write(`${title} ${change} (version ${version})\n`);
  if (wait) {
    const plan = { goal: "ready", objects: [{ ref, version }], timeoutMs: timeout } as const;
    await waitAndTell(admin, io, { ...plan, countsOlderPods: true });
  }
  return exitCodes.ok;
}
