// Validates probes and lifecycle hooks: exactly one handler each, and valid numbers.
import type {
  Container,
  ExecAction,
  HTTPGetAction,
  Lifecycle,
  Probe,
  TCPSocketAction,
} from "kubernetes-types/core/v1.js";
import { forbiddenField, invalidValue, required, unsupported } from "../causes.ts";
import type { KubeStatusCause } from "../types.ts";
import { type Causes, checkNonNegative, checkPort, checkPortOrName, refuse } from "./field-checks.ts";
import { httpHeaderProblems } from "./names.ts";

interface Handler {
  readonly exec?: ExecAction;
  readonly httpGet?: HTTPGetAction;
  readonly tcpSocket?: TCPSocketAction;
  readonly grpc?: { readonly port?: number };
  readonly sleep?: { readonly seconds?: number };
}

export function checkHooksAndProbes(field: string, container: Container): Causes {
  const { livenessProbe, readinessProbe, startupProbe } = container;
  const found = [
    ...checkLifecycle(`${field}.lifecycle`, container.lifecycle),
    ...checkProbe(`${field}.livenessProbe`, livenessProbe),
    ...mustSucceedOnce(`${field}.livenessProbe`, livenessProbe),
    ...checkProbe(`${field}.readinessProbe`, readinessProbe),
    ...checkProbe(`${field}.startupProbe`, startupProbe),
    ...mustSucceedOnce(`${field}.startupProbe`, startupProbe),
  ];
  if (readinessProbe?.terminationGracePeriodSeconds !== undefined) {
    found.push(
      invalidValue(
        `${field}.readinessProbe.terminationGracePeriodSeconds`,
        readinessProbe.terminationGracePeriodSeconds,
        "must not be set for readinessProbes",
      ),
    );
  }
  return found;
}

export function refuseHooksAndProbes(field: string, container: Container): Causes {
  return (["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] as const)
    .filter((name) => container[name] !== undefined)
    .map((name) =>
      forbiddenField(`${field}.${name}`, "may not be set for init containers without restartPolicy=Always"),
    );
}

function mustSucceedOnce(field: string, probe: Probe | undefined): Causes {
  return probe?.successThreshold === undefined || probe.successThreshold === 1
    ? []
    : [invalidValue(`${field}.successThreshold`, probe.successThreshold, "must be 1")];
}

function checkProbe(field: string, probe: Probe | undefined): Causes {
  if (probe === undefined) return [];
  const { terminationGracePeriodSeconds: grace } = probe;
  return [
    ...checkHandler(field, probe as Handler),
    ...checkNonNegative(`${field}.initialDelaySeconds`, probe.initialDelaySeconds),
    ...checkNonNegative(`${field}.timeoutSeconds`, probe.timeoutSeconds),
    ...checkNonNegative(`${field}.periodSeconds`, probe.periodSeconds),
    ...checkNonNegative(`${field}.successThreshold`, probe.successThreshold),
    ...checkNonNegative(`${field}.failureThreshold`, probe.failureThreshold),
    ...(grace !== undefined && grace <= 0
      ? [invalidValue(`${field}.terminationGracePeriodSeconds`, grace, "must be greater than 0")]
      : []),
  ];
}

function checkLifecycle(field: string, lifecycle: Lifecycle | undefined): Causes {
  const { postStart, preStop } = lifecycle ?? {};
  return [
    ...(postStart === undefined ? [] : checkHandler(`${field}.postStart`, postStart as Handler)),
    ...(preStop === undefined ? [] : checkHandler(`${field}.preStop`, preStop as Handler)),
  ];
}

const handlerChecks = {
  exec: (field: string, { exec }: Handler) =>
    (exec?.command ?? []).length === 0 ? [required(`${field}.command`)] : [],
  httpGet: (field: string, { httpGet }: Handler) =>
    httpGet === undefined ? [] : checkHttpGet(field, httpGet),
  tcpSocket: (field: string, { tcpSocket }: Handler) =>
    checkPortOrName(`${field}.port`, tcpSocket?.port ?? 0),
  grpc: (field: string, { grpc }: Handler) => checkPort(`${field}.port`, grpc?.port ?? 0),
  sleep: (field: string, { sleep }: Handler) => checkNonNegative(`${field}.seconds`, sleep?.seconds),
};

function checkHandler(field: string, handler: Handler): Causes {
  const found: KubeStatusCause[] = [];
  let handlers = 0;
  for (const type of ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] as const) {
    if (handler[type] === undefined) continue;
    handlers += 1;
    if (handlers > 1) {
      found.push(forbiddenField(`${field}.${type}`, "may not specify more than 1 handler type"));
    } else {
      found.push(...handlerChecks[type](`${field}.${type}`, handler));
    }
  }
  if (handlers === 0) found.push(required(field, "must specify a handler type"));
  return found;
}

function checkHttpGet(
  field: string,
  { path = "", port, scheme = "HTTP", httpHeaders = [] }: HTTPGetAction,
): Causes {
  const schemes = ["HTTP", "HTTPS"];
  return [
    ...(path === "" ? [required(`${field}.path`)] : []),
    ...checkPortOrName(`${field}.port`, port ?? 0),
    ...(schemes.includes(scheme) ? [] : [unsupported(`${field}.scheme`, scheme, schemes)]),
    ...httpHeaders.flatMap(({ name }) => refuse(`${field}.httpHeaders`, name, httpHeaderProblems(name))),
  ];
}
