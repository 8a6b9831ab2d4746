// Calls of the admin API over one kept connection, with the context that the command line uses.
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import type { InstalledKrane } from "../../test/support/node/installed-krane.ts";

export type AdminCall = <T>(method: string, body: unknown) => Promise<T>;

export const region = "local.dev";
const pollEveryMs = 5;
const adminPath = "/krane.admin.v1.AdminService";

export const refOf = (id: string) => ({ ref: { region, kind: "OBJECT_KIND_DEPLOYMENT", id } });

export async function openAdmin({ type }: InstalledKrane): Promise<AdminCall> {
  const config = await type("cat ~/.config/krane/config.toml");
  const server = /^server = "(.*)"$/m.exec(config)?.[1] ?? "";
  const token = (await type("cat ~/.config/krane/admin-token")).trim();
  const agent = new Agent({ keepAlive: true });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return <T>(method: string, body: unknown) =>
    new Promise<T>((resolve, reject) => {
      const outgoing = request(
        `${server}${adminPath}/${method}`,
        { method: "POST", agent, headers },
        (incoming) => {
          text(incoming).then((got) => {
            if (incoming.statusCode === 200) resolve(JSON.parse(got) as T);
            else reject(new Error(`${method}: ${got}`));
          }, reject);
        },
      );
      outgoing.on("error", reject);
      outgoing.end(JSON.stringify(body));
    });
}

/** When it first succeeded. */
export async function until(isSo: () => Promise<boolean>): Promise<number> {
  while (!(await isSo())) await delay(pollEveryMs);
  return performance.now();
}
