// krane adopt: shows the objects of another krane, asks, and tells the agent to take over those that desired state names.

import { create } from "@bufbuild/protobuf";
import {
  type AdoptObjectRequest,
  AdoptObjectRequestSchema,
  type Stranger,
  StrangerSchema,
} from "../../gen/krane/v1/agent_pb.ts";
import { printable } from "../../telemetry/scrub.ts";
import { isStale } from "../../why/silence.ts";
import type { Admin } from "../admin/admin-access.ts";
import { unknownRegion } from "../admin/known-regions.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { ageOf } from "../terminal/age.ts";
import { isForPrograms, jsonOf, renderValue } from "../terminal/output.ts";
import { type Cell, renderTable } from "../terminal/table.ts";

export interface AdoptOptions {
  readonly kind?: string;
  readonly namespace?: string;
  readonly dryRun?: true;
  readonly yes?: true;
}

interface Reported {
  readonly strangers: readonly Stranger[];
  readonly stateAtMs: bigint;
  readonly nowMs: bigint;
}

interface Adopted {
  readonly sent: readonly Stranger[];
  readonly notListed: readonly AdoptObjectRequest[];
}

/** As many as one call may carry. */
const batchMax = 1_000;
const titles = ["KIND", "OBJECT", "ID", "ACTION", "REASON"] as const;
const nothing: Adopted = { sent: [], notListed: [] };

export async function adoptObjects(
  admin: Admin,
  io: Io,
  names: readonly string[],
  options: AdoptOptions,
): Promise<number> {
  const reported = await load(admin);
  const strangers = select(reported.strangers, names, options, admin.region);
  const toAdopt = strangers.filter(isToAdopt);
  if (!isForPrograms(admin.output)) show(admin, io, strangers, reported);
  if (toAdopt.length === 0 || options.dryRun) return finish(admin, io, reported, strangers, nothing);
  if (!(await isAgreed(admin, io, toAdopt.length, options))) {
    io.stderr.write("nothing was adopted\n");
    return exitCodes.failure;
  }
  const adopted = await send(admin, toAdopt);
  return finish(admin, io, reported, strangers, adopted);
}

async function load(admin: Admin): Promise<Reported> {
  const { client, region, signal } = admin;
  const reported = await client.listStrangers({ region }, { signal });
  if (reported.stateAtMs > 0n) return reported;
  const flaw = await unknownRegion(admin, region);
  throw flaw ?? new CommandError("failed", `no agent of region ${region} has reported yet`);
}

/** Throws if a name matches nothing: a mistyped one would otherwise look as if there were nothing to do. */
function select(
  strangers: readonly Stranger[],
  names: readonly string[],
  { kind, namespace }: AdoptOptions,
  region: string,
): readonly Stranger[] {
  const isKind = (stranger: Stranger) =>
    kind === undefined ||
    [stranger.kind, kindOf(stranger)].some((each) => each.toLowerCase() === kind.toLowerCase());
  const chosen = strangers.filter(
    (each) => isKind(each) && (namespace === undefined || each.namespace === namespace),
  );
  const isNamed = (stranger: Stranger, name: string) =>
    [stranger.name, `${stranger.namespace}/${stranger.name}`, stranger.id].includes(name);
  const missing = names.filter((name) => !chosen.some((each) => isNamed(each, name)));
  if (missing.length > 0)
    throw new CommandError(
      "not_found",
      `no object of another krane in region ${region} is named ${missing.map(printable).join(", ")}; see krane adopt --dry-run`,
    );
  return names.length === 0 ? chosen : chosen.filter((each) => names.some((name) => isNamed(each, name)));
}

function isToAdopt({ adoptable, pending }: Stranger): boolean {
  return adoptable && !pending;
}

function kindOf({ kind }: Pick<Stranger, "kind">): string {
  return kind.slice(kind.lastIndexOf("/") + 1);
}

function show({ region, paint }: Admin, io: Io, strangers: readonly Stranger[], reported: Reported): void {
  const { stateAtMs, nowMs } = reported;
  if (isStale(stateAtMs, Number(nowMs)))
    io.stderr.write(`the agent of region ${region} reported this ${ageOf(stateAtMs, Number(nowMs))} ago\n`);
  if (strangers.length === 0) {
    io.stderr.write(`no objects of another krane in region ${region}\n`);
    return;
  }
  const rows = strangers.map((each): Cell[] => [
    kindOf(each),
    `${each.namespace}/${each.name}`,
    each.id,
    actionOf(each),
    each.reason,
  ]);
  io.stdout.write(renderTable(titles, rows, paint));
  if (strangers.filter(isToAdopt).length >= batchMax)
    io.stderr.write(`only the first ${batchMax} are listed; run this again for the rest\n`);
}

function actionOf({ adoptable, pending, obstacle }: Stranger): Cell {
  if (!adoptable) return { text: `${obstacle}, left alone`, tone: "faint" };
  return pending ? { text: "is being adopted", tone: "busy" } : { text: "adopt", tone: "good" };
}

async function isAgreed(admin: Admin, io: Io, count: number, { yes }: AdoptOptions): Promise<boolean> {
  if (yes) return true;
  const question = `Adopt ${counted(count)} in ${admin.region}? If another krane is running with this key or for that region, stop it first. [y/N] `;
  const answer = await io.ask?.(question, admin.signal);
  if (answer === undefined) throw new CommandError("usage", "no terminal to confirm on; pass --yes");
  return /^y(es)?$/i.test(answer.trim());
}

async function send({ client, region, signal }: Admin, strangers: readonly Stranger[]): Promise<Adopted> {
  const objects = strangers.map(({ controller, kind, namespace, name, uid }) =>
    create(AdoptObjectRequestSchema, { controller, kind, namespace, name, uid }),
  );
  const { notListed } = await client.adoptObjects(
    { region, objects: objects.slice(0, batchMax) },
    { signal },
  );
  const isSent = ({ kind, namespace, name, uid }: Stranger) =>
    !notListed.some(
      (each) => each.kind === kind && each.namespace === namespace && each.name === name && each.uid === uid,
    );
  return { sent: strangers.slice(0, batchMax).filter(isSent), notListed };
}

async function finish(
  { output }: Admin,
  io: Io,
  { stateAtMs, nowMs }: Reported,
  strangers: readonly Stranger[],
  { sent, notListed }: Adopted,
): Promise<number> {
  if (isForPrograms(output)) {
    const value = {
      strangers: strangers.map((each) => jsonOf(StrangerSchema, each)),
      adopted: sent.map((each) => jsonOf(StrangerSchema, each)),
      notListed: notListed.map((each) => jsonOf(AdoptObjectRequestSchema, each)),
      stateAtMs: `${stateAtMs}`,
      nowMs: `${nowMs}`,
    };
    io.stdout.write(await renderValue(value, output));
    return exitCodes.ok;
  }
  if (notListed.length > 0)
    io.stderr.write(`${counted(notListed.length)} changed meanwhile and will not be adopted\n`);
  if (sent.length === 0) return exitCodes.ok;
  io.stdout.write(`${counted(sent.length)} will be adopted\n`);
  io.stderr.write(
    "the agent gets it within half a minute, and adopts up to 20 objects per second and controller; " +
      "krane adopt --dry-run shows what is left\n",
  );
  return exitCodes.ok;
}

function counted(count: number): string {
  return count === 1 ? "1 object" : `${count} objects`;
}
