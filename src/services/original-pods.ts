// Pods that the original krane made. Their token is the one that Kubernetes mounts itself, for the API server, so it never
// has krane's audience. They are served with that token, and only they are:
//
// - Their ReplicaSet carries the seal that krane made for its uid when it took it over. A missing seal proves nothing:
//   until krane has taken it over, the caller is told to retry.
// - They have neither the mark of a template of krane's nor the token volume of one. The volume is part of the spec, which
//   nobody can change. So a pod of krane's own template never gets secrets for a token of the API server, which other
//   programs that get to see such a token could replay.
//
// It ends by itself: krane changes the template when it takes a ReplicaSet over, so no new pods of this kind come.
import type { Pod } from "kubernetes-types/core/v1.js";
import { tokenVolumeName } from "../kinds/deployment/secrets-token.ts";
import { annotationKeys } from "../model/labels.ts";
import type { SealReading } from "../model/seal.ts";

/** "not-yet": it looks like one, but krane has not taken its ReplicaSet over. */
export type OriginalPod = "yes" | "no" | "not-yet";

/** The pod passed all checks of workload-identity.ts, and the seal is that of its ReplicaSet. */
export function judgeOriginalPod({ metadata, spec }: Pod, seal: SealReading): OriginalPod {
  const isMarked = metadata?.annotations?.[annotationKeys.templateHash] !== undefined;
  const refusesToken = spec?.automountServiceAccountToken === false;
  const hasOwnToken = spec?.volumes?.some(({ name }) => name === tokenVolumeName) ?? false;
  if (isMarked || refusesToken || hasOwnToken) return "no";
  if (seal.kind === "missing" || seal.kind === "broken") return "not-yet";
  return seal.kind === "valid" && seal.isAdopted ? "yes" : "no";
}
