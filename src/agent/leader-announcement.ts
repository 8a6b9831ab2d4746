// What the leader announces on its Lease, and how a standby reads it.
import { isIP } from "node:net";
import type { Config } from "../config/config.ts";
import type { LeaseHolder } from "../kube/lease-state.ts";
import { annotationKeys } from "../model/labels.ts";
import type { Leader } from "./leader-link.ts";

interface ControlPlaneUrl {
  readonly control: Pick<Config["control"], "url">;
}

export type AnnouncedSettings = Pick<Config, "advertiseAddress" | "rpcPort" | "tls">;

/** What the holder of the Lease says about itself. It has the holder's identity, because a holder may have no address. */
export function announcement(
  config: AnnouncedSettings & ControlPlaneUrl,
  identity: string,
): Readonly<Record<string, string>> {
  const controlPlane = { [annotationKeys.leaderControlPlane]: `${identity} ${config.control.url}` };
  const url = announcedUrl(config);
  return url === undefined
    ? controlPlane
    : { ...controlPlane, [annotationKeys.leaderUrl]: `${identity} ${url}` };
}

function announcedUrl({ advertiseAddress, rpcPort, tls }: AnnouncedSettings): string | undefined {
  if (advertiseAddress === undefined || rpcPort === 0) return undefined;
  const host = isIP(advertiseAddress) === 6 ? `[${advertiseAddress}]` : advertiseAddress;
  return `${tls === undefined ? "http" : "https"}://${host}:${rpcPort}`;
}

/** What this process proves, in the form in which a standby has it that read the announcement. */
export function ownAnnouncement(
  config: AnnouncedSettings,
  identity: string | undefined,
): { readonly identity: string; readonly origin: string } | undefined {
  const url = announcedUrl(config);
  return identity === undefined || url === undefined ? undefined : { identity, origin: new URL(url).origin };
}

/** The control plane of the leader, if it is another one than this agent's. An agent that says nothing has none. */
export function otherControlPlane(
  holder: Pick<LeaseHolder, "identity" | "annotations"> | undefined,
  { control }: ControlPlaneUrl,
): string | undefined {
  const text = holder?.annotations[annotationKeys.leaderControlPlane] ?? "";
  const [owner, url = ""] = text.split(" ");
  return owner !== holder?.identity || url === control.url ? undefined : url;
}

const announced = /^(\S+) (https?):\/\/(?:\[([0-9a-f:.]+)\]|([\d.]+)):(\d{1,5})$/i;

/** The leader, or why it cannot be called. */
export function leaderOf(
  holder: Pick<LeaseHolder, "identity" | "annotations"> | undefined,
  { tls }: Pick<Config, "tls">,
): Leader | string {
  if (holder === undefined) return "no agent leads yet; retry";
  const { identity, annotations } = holder;
  const name = instanceOf(identity);
  const text = annotations[annotationKeys.leaderUrl] ?? "";
  const [, owner, scheme, ipv6, ipv4] = announced.exec(text) ?? [];
  const address = ipv6 ?? ipv4 ?? "";
  const url = text.slice(identity.length + 1);
  const isOwn = owner === identity && isIP(address) !== 0 && URL.canParse(url);
  if (!isOwn) return `${name} leads, and announces no address (advertise_address): retry there`;
  // Somebody who can write the Lease could otherwise have tokens sent in cleartext.
  if (tls !== undefined && scheme !== "https") return `${name} leads, and its port has no TLS: retry there`;
  return { identity, name, url: new URL(url) };
}

/** The holder is an instance id and a random suffix for each process. */
export function instanceOf(identity: string): string {
  return identity.replace(/_[0-9a-f]{8}$/, "");
}
