// Why something does not run or does not go, in the words of Kubernetes: one line of plain text, cut, because
// it is kept for each of thousands of pods, sent upstream, and printed on terminals.
import type { ObjectMeta } from "../kube/types.ts";

const obstacleCharsMax = 240;

/** `reason: message`. Texts of the cluster may hold line breaks and escape sequences; this one holds neither. */
export function obstacleText(reason: string | undefined, message: string | undefined): string {
  const parts = [reason ?? "", message ?? ""].map(onOneLine).filter((part) => part !== "");
  const text = parts.join(": ");
  return text.length > obstacleCharsMax ? `${text.slice(0, obstacleCharsMax)}...` : text;
}

function onOneLine(text: string): string {
  // Cut before it is searched, so that a message of a megabyte costs no more than a short one.
  return text
    .slice(0, obstacleCharsMax * 4)
    .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim();
}

/**
 * The server names the pod that it refused, and each attempt makes up another name. Without its ending the text
 * is the same each time, and no news.
 */
export function withoutPodName(message: string | undefined, owner: string | undefined): string | undefined {
  return message?.replaceAll(/\b(pods?) "([^"]*)"/gi, (text, what: string, name: string) =>
    name.startsWith(`${owner}-`) ? `${what} "${owner}"` : text,
  );
}

/**
 * What keeps an object that is being deleted; undefined where nothing does. It is no matter of seconds: whoever
 * put a finalizer there has to take it away, and krane does not do it for them.
 */
export function finalizersOf(metadata: ObjectMeta | undefined): string | undefined {
  if (metadata?.deletionTimestamp === undefined) return undefined;
  const finalizers = metadata.finalizers ?? [];
  return finalizers.length === 0 ? undefined : obstacleText(undefined, finalizers.join(", "));
}

/** Reads on after the kind of the object, as `ReplicaSet`. */
export function heldText(kind: string, finalizers: string): string {
  return `${kind} is being deleted and waits for finalizer ${finalizers}`;
}
