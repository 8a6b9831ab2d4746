// How the objects of a sentinel are named, labelled and found. All of them are in one namespace, and
// their names follow from the sentinel's own, so whoever holds the name holds all five.
import { type Component, components, labelKeys, ownLabels, sentinelNamespace } from "../../model/labels.ts";
import { gossipSuffix } from "../../model/names.ts";

/** Who a sentinel is, and whose. */
export interface SentinelIdentity {
  readonly workspaceId: string;
  readonly projectId: string;
  readonly environmentId: string;
  readonly sentinelId: string;
}

/** Where traffic comes in. */
export const sentinelPort = 8040;
/** Where sentinels of one environment tell each other who is there. */
export const gossipPort = 7946;

/** Leaves room for the suffix in a name of 63 characters. */
export const sentinelNameLengthMax = 63 - gossipSuffix.length;

/** The name of the gossip Service and of the gossip policy. */
export function gossipName(sentinelName: string): string {
  return sentinelName + gossipSuffix;
}

/** The sentinel that an object belongs to, by the object's name. No sentinel's own name ends in the suffix. */
export function sentinelNameOf(objectName: string): string {
  return objectName.endsWith(gossipSuffix) ? objectName.slice(0, -gossipSuffix.length) : objectName;
}

/**
 * Finds every object of every sentinel. It does not ask for the managed-by label, which older agents
 * left off the gossip objects; ownership is judged object by object.
 */
export const sentinelSelection = {
  namespace: sentinelNamespace,
  labelSelector: `${labelKeys.component} in (${components.gossipLan},${components.sentinel}),${labelKeys.sentinelId}`,
} as const;

export function sentinelLabels(sentinel: SentinelIdentity, component: Component): Record<string, string> {
  return {
    [labelKeys.workspaceId]: sentinel.workspaceId,
    [labelKeys.projectId]: sentinel.projectId,
    [labelKeys.environmentId]: sentinel.environmentId,
    [labelKeys.sentinelId]: sentinel.sentinelId,
    ...ownLabels(component),
  };
}

/** The label that never varies between versions of one sentinel. */
export function identityLabels({ sentinelId }: SentinelIdentity): Record<string, string> {
  return { [labelKeys.sentinelId]: sentinelId };
}

/** Every sentinel of the same environment, this one included. */
export function peerLabels({ environmentId }: SentinelIdentity): Record<string, string> {
  return { [labelKeys.environmentId]: environmentId, [labelKeys.component]: components.sentinel };
}
