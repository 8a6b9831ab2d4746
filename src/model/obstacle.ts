// Formats Kubernetes' own reasons why something does not run or cannot be deleted: one line of plain text of limited
// length, because it is kept for thousands of pods, reported upstream, and printed on terminals.
import type { ObjectMeta } from "../kube/types.ts";

const obstacleCharsMax = 240;

/** `reason: message`, without the line breaks and escape sequences that text from the cluster may contain. */
export function obstacleText(reason: string | undefined, message: string | undefined): string {
  const parts = [reason ?? "", message ?? ""].map(onOneLine).filter((part) => part !== "");
  const text = parts.join(": ");
  // join() creates a flat string, which does not keep the whole text in memory.
  return [text.slice(0, obstacleCharsMax), text.length > obstacleCharsMax ? "..." : ""].join("");
}

function onOneLine(text: string): string {
  // Cut before it is searched, so that a message of a megabyte costs no more than a short one.
  return text
    .slice(0, obstacleCharsMax * 4)
    .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim();
}

/**
 * The server's message names the refused pod, and each attempt generates another name. Without the random suffix, the text
 * stays the same and is not reported again.
 */
export function withoutPodName(message: string | undefined, owner: string | undefined): string | undefined {
  return message?.replaceAll(/\b(pods?) "([^"]*)"/gi, (text, what: string, name: string) =>
    name.startsWith(`${owner}-`) ? `${what} "${owner}"` : text,
  );
}

/**
 * The finalizers that an object's deletion waits for; undefined if there are none. This may last: only the owner of a
 * finalizer may remove it, and krane never does.
 */
export function finalizersOf(metadata: ObjectMeta | undefined): string | undefined {
  if (metadata?.deletionTimestamp === undefined) return undefined;
  const finalizers = metadata.finalizers ?? [];
  return finalizers.length === 0 ? undefined : obstacleText(undefined, finalizers.join(", "));
}

/** `kind`: the kind of the object, such as `ReplicaSet`. */
export function heldText(kind: string, finalizers: string): string {
  return `${kind} is being deleted and waits for finalizer ${finalizers}`;
}
