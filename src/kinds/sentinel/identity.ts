// Names, labels and selectors of a sentinel's objects. All sentinels share one namespace, and the names of the objects
// derive from the sentinel's name, so the owner of that name owns all five.
import { type Component, components, labelKeys, ownLabels, sentinelNamespace } from "../../model/labels.ts";
import { gossipSuffix } from "../../model/names.ts";

/** The id of a sentinel and of its owners. */
export interface SentinelIdentity {
  readonly workspaceId: string;
  readonly projectId: string;
  readonly environmentId: string;
  readonly sentinelId: string;
}

/** Receives the traffic. */
export const sentinelPort = 8040;
/** Used by the sentinels of an environment to track their members. */
export const gossipPort = 7946;

/** Leaves room for the gossip suffix within 63 characters. */
export const sentinelNameLengthMax = 63 - gossipSuffix.length;

/** The name of the gossip Service and of the gossip policy. */
export function gossipName(sentinelName: string): string {
  return sentinelName + gossipSuffix;
}

/** The name of the sentinel that an object belongs to. No sentinel's own name ends in the suffix. */
export function sentinelNameOf(objectName: string): string {
  return objectName.endsWith(gossipSuffix) ? objectName.slice(0, -gossipSuffix.length) : objectName;
}

/**
 * Selects all objects of all sentinels. It does not require the managed-by label, because older agents did not set it
 * on gossip objects; ownership is judged per object.
 */
export const sentinelSelection = {
  namespace: sentinelNamespace,
  labelSelector: `${labelKeys.component} in (${components.gossipLan},${components.sentinel}),${labelKeys.sentinelId}`,
} as const;

/** The labels that this selection asks for. */
export function selectedLabels(objectName: string, sentinelId: string): Record<string, string> {
  const isGossip = objectName !== sentinelNameOf(objectName);
  return {
    [labelKeys.sentinelId]: sentinelId,
    ...ownLabels(isGossip ? components.gossipLan : components.sentinel),
  };
}

export function sentinelLabels(sentinel: SentinelIdentity, component: Component): Record<string, string> {
  return {
    [labelKeys.workspaceId]: sentinel.workspaceId,
    [labelKeys.projectId]: sentinel.projectId,
    [labelKeys.environmentId]: sentinel.environmentId,
    [labelKeys.sentinelId]: sentinel.sentinelId,
    ...ownLabels(component),
  };
}

/** The label that is the same in all versions of a sentinel. */
export function identityLabels({ sentinelId }: SentinelIdentity): Record<string, string> {
  return { [labelKeys.sentinelId]: sentinelId };
}

/** Selects every sentinel of the environment, including this one. */
export function peerLabels({ environmentId }: SentinelIdentity): Record<string, string> {
  return { [labelKeys.environmentId]: environmentId, [labelKeys.component]: components.sentinel };
}
