// krane scale: changes the number of pods of an object, and nothing else.
import { ObjectView_Desired as Desired } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Admin } from "../admin/admin-access.ts";
import { type ScaleOptions, scaleApp } from "../apps/scale-app.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { waitAndTell } from "./command-wait.ts";
import { resolveName } from "./named-object.ts";
import { objectKindOf, scaledKinds } from "./object-names.ts";
import { findObject, titleOf } from "./object-search.ts";

export async function scaleObject(
  admin: Admin,
  io: Io,
  what: { readonly kind: string; readonly name: string | undefined },
  options: ScaleOptions,
): Promise<number> {
  const { replicas, ifVersion, wait, timeout } = options;
  const { kind, name } = await resolveName(admin, { first: what.kind, second: what.name }, scaledKinds);
  if (name === undefined)
    throw new CommandError("usage", `which ${kind}? krane scale ${kind} ID --replicas N`);
  if (kind === "app") return scaleApp(admin, io, name, options);
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
