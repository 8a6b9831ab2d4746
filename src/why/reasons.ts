// Maps reasons from the agent and from Kubernetes to causes. The first matching pattern wins, so specific ones come
// before general ones: an exhausted quota and a terminating namespace are also 403s.
import { isAboutOlderPods } from "../kinds/deployment/failing.ts";
import type { Cause } from "./explanation.ts";

type Pattern = readonly [RegExp, Cause];

/** For an attempt that failed and is retried. */
const attempts: readonly Pattern[] = [
  [/keeps changing|conflicts? with "/, "contested"],
  [/has no CiliumNetworkPolicy|no matches for kind|could not find the requested resource/, "missing-crd"],
  [/exceeded quota/, "quota"],
  [/being terminated|NamespaceTerminating/, "namespace-terminating"],
  [/still being deleted/, "deletion-in-progress"],
  [/admission webhook|denied the request/, "refused-by-cluster"],
  [/: 401\b/, "unauthenticated"],
  [/: 403\b|[Ff]orbidden/, "forbidden"],
];

/** For pods that cannot run. */
const pods: readonly Pattern[] = [
  [/is being deleted and waits for finalizer/, "deletion-in-progress"],
  [/FailedCreate\b.*exceeded quota/, "quota"],
  [/FailedCreate\b/, "pods-refused"],
  [/ImagePullBackOff|ErrImagePull|InvalidImageName|ErrImageNeverPull|ImageInspectError/, "image-pull"],
  [/CrashLoopBackOff/, "crash-loop"],
  [/CreateContainerConfigError|CreateContainerError/, "container-config"],
  [/Unschedulable|SchedulingGated/, "unschedulable"],
  [/ProgressDeadlineExceeded/, "rollout-stuck"],
];

export function causeOfAttempt(reason: string): Cause {
  return first(attempts, reason) ?? "retrying";
}

/** A reason from krane's own validation contains no HTTP status. */
export function causeOfRefusal(reason: string): Cause {
  return /: 4\d\d\b/.test(reason) ? "refused-by-cluster" : "invalid-spec";
}

export function causeOfPods(failing: string): Cause {
  if (isAboutOlderPods(failing)) return "older-pods-failing";
  return first(pods, failing) ?? "pods-failing";
}

function first(patterns: readonly Pattern[], text: string): Cause | undefined {
  return patterns.find(([pattern]) => pattern.test(text))?.[1];
}
