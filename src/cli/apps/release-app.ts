// krane release and krane rollout: start, follow, undo and pause the releases of an app.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { AppViewSchema, type ReleaseAppRequestSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { App } from "../../gen/krane/admin/v1/app_pb.ts";
import { printable } from "../../telemetry/scrub.ts";
import { releasesOf } from "../../why/app-releases.ts";
import type { Admin } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { parseObjectName } from "../objects/object-names.ts";
import { renderTable } from "../terminal/table.ts";
import { releaseTable } from "./app-rows.ts";
import { type FoundApp, findApp } from "./app-search.ts";
import { verdictOn, waitForApps } from "./app-wait.ts";

/** How users name an app: `web`, `app/web`, `app web`, or `demo/web` with its namespace. */
export interface NamedApp {
  readonly first: string;
  readonly second: string | undefined;
}

export interface ReleaseOptions {
  readonly ifVersion?: bigint;
  readonly wait?: true;
  readonly timeout: number;
}

/** What `krane release` and `krane rollout` change. */
export type ReleaseChange =
  | { readonly kind: "image"; readonly image: string }
  | { readonly kind: "restart" }
  /** 0: to the release before. */
  | { readonly kind: "undo"; readonly number: number }
  | { readonly kind: "pause" }
  | { readonly kind: "resume" };

async function findNamedApp(admin: Admin, { first, second }: NamedApp): Promise<FoundApp> {
  const isKind = second !== undefined || /^apps?\//i.test(first);
  const { name } = isKind ? parseObjectName(first, second, ["app"]) : { name: first };
  if (name === undefined || name === "") throw new CommandError("usage", "which app? pass its id or name");
  return findApp(admin, name);
}

export async function changeReleases(
  admin: Admin,
  io: Io,
  named: NamedApp,
  change: ReleaseChange,
  { ifVersion, wait, timeout }: ReleaseOptions,
): Promise<number> {
  const { region, paint } = admin;
  const { id, view } = await findNamedApp(admin, named);
  const title = `app/${printable(id)}`;
  const result = await send(admin, id, change, ifVersion);
  io.stdout.write(`${title} ${paint(resultText(change, result, view.app?.paused), "good")}\n`);
  const release = result.release || result.returnedTo || 0;
  if (wait) await waitForApps(admin, io, { apps: [{ region, id, release }], timeoutMs: timeout });
  return exitCodes.ok;
}

interface Result {
  readonly app?: App | undefined;
  /** 0 if none was started. */
  readonly release: number;
  /** The earlier one that is current again, if any. */
  readonly returnedTo?: number;
}

async function send(
  { client, region, signal, target }: Admin,
  id: string,
  change: ReleaseChange,
  expectedVersion: bigint | undefined,
): Promise<Result> {
  const request = { region, id, ...(expectedVersion !== undefined && { expectedVersion }) };
  try {
    if (change.kind === "pause" || change.kind === "resume")
      return await client.pauseApp({ ...request, paused: change.kind === "pause" }, { signal });
    return await client.releaseApp({ ...request, change: wireChangeOf(change) }, { signal });
  } catch (error) {
    // The app was read before, so that the server has an admin API.
    if (!(error instanceof ConnectError) || error.code !== Code.Unimplemented) throw error;
    throw new CommandError("failed", `${target.url} is too old for this command; upgrade the server`);
  }
}

type WireChange = NonNullable<MessageInitShape<typeof ReleaseAppRequestSchema>["change"]>;

function wireChangeOf(change: Exclude<ReleaseChange, { readonly kind: "pause" | "resume" }>): WireChange {
  switch (change.kind) {
    case "image":
      return { case: "image", value: change.image };
    case "restart":
      return { case: "restart", value: {} };
    case "undo":
      return { case: "undo", value: { number: change.number } };
  }
}

function resultText(
  change: ReleaseChange,
  { app, release, returnedTo = 0 }: Result,
  wasPaused = false,
): string {
  const started = release === 0 ? "" : `, release ${release} started`;
  if (change.kind === "pause") return wasPaused ? "is already paused" : "paused";
  if (change.kind === "resume") return wasPaused ? `resumed${started}` : "is not paused";
  if (release > 0) return `release ${release} started`;
  if (returnedTo > 0) return `is back on release ${returnedTo}, whose pods still run`;
  const { current } = releasesOf(create(AppViewSchema, app && { app }));
  return current === undefined ? "unchanged" : `stays on release ${current.number}, which runs this`;
}

export async function showHistory(admin: Admin, io: Io, named: NamedApp): Promise<number> {
  const { view } = await findNamedApp(admin, named);
  const { titles, rows } = releaseTable(view, admin.now());
  io.stdout.write(renderTable(titles, rows, admin.paint));
  return exitCodes.ok;
}

export interface StatusOptions {
  readonly wait: boolean;
  readonly timeout: number;
}

/** Waits for the end of a release, unless told otherwise; fails if it failed. */
export async function showStatus(
  admin: Admin,
  io: Io,
  named: NamedApp,
  { wait, timeout }: StatusOptions,
): Promise<number> {
  const { id, view } = await findNamedApp(admin, named);
  const title = `app/${printable(id)}`;
  if (wait) {
    await waitForApps(admin, io, { apps: [{ region: admin.region, id, release: 0 }], timeoutMs: timeout });
    return exitCodes.ok;
  }
  const { kind, text } = verdictOn(view, 0, title);
  if (kind === "failed") throw new CommandError("failed", `${title}: ${text}`);
  io.stdout.write(`${title}: ${text}\n`);
  return exitCodes.ok;
}
