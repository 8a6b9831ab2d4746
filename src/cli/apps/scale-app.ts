// krane scale app: changes the number of pods of an app. The current release is scaled in place.
import { Code, ConnectError } from "@connectrpc/connect";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { findApp } from "./app-search.ts";
import { waitForApps } from "./app-wait.ts";

export interface ScaleOptions {
  readonly replicas: number;
  readonly ifVersion?: bigint;
  readonly wait?: true;
  readonly timeout: number;
}

/** A release that goes on changes the version of its app a few times. */
const attemptsMax = 5;

export async function scaleApp(
  admin: Admin,
  io: Io,
  name: string,
  { replicas, ifVersion, wait, timeout }: ScaleOptions,
): Promise<number> {
  const { region, paint } = admin;
  const { id } = await findApp(admin, name);
  const title = `app/${printable(id)}`;
  const { before, version, release } = await scaled(admin, id, replicas, ifVersion);
  const change =
    before === replicas
      ? `${paint("unchanged", "faint")} at ${replicas}`
      : `${paint("scaled", "good")} from ${before} to ${replicas}`;
  const started = release === 0 ? "" : `, release ${release} started`;
  io.stdout.write(`${title} ${change} (version ${version})${started}\n`);
  if (wait) await waitForApps(admin, io, { apps: [{ region, id, release }], timeoutMs: timeout });
  return exitCodes.ok;
}

async function scaled(
  { client, region, signal }: Admin,
  id: string,
  replicas: number,
  ifVersion: bigint | undefined,
): Promise<{ before: number; version: bigint; release: number }> {
  for (let attempt = 1; ; attempt++) {
    const { app: view } = await client.getApp({ region, id }, { signal });
    const { spec, version = 0n } = view?.app ?? {};
    if (spec?.template === undefined)
      throw new CommandError("failed", "the control plane's response has no app");
    const before = spec.template.replicas;
    if (before === replicas && (ifVersion ?? version) === version) return { before, version, release: 0 };
    try {
      const { app, release } = await client.applyApp(
        {
          region,
          spec: { ...spec, template: { ...spec.template, replicas } },
          expectedVersion: ifVersion ?? version,
        },
        { signal },
      );
      return { before, version: app?.version ?? version, release };
    } catch (error) {
      const isOvertaken = error instanceof ConnectError && error.code === Code.Aborted;
      if (!isOvertaken || ifVersion !== undefined || attempt === attemptsMax) throw error;
    }
  }
}
