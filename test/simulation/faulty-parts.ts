// The parts that one controller stands on, with a switch that spoils them for that controller alone: its
// way to Kubernetes, its calls at the control plane, and the functions that it is given.
//
// - A fault takes hold of what is open already too: watches and streams fail, or fall silent.
// - A call that hangs goes on hanging when the fault is over; only its caller's limits end it.
import {
  Code,
  ConnectError,
  type Interceptor,
  type StreamRequest,
  type UnaryRequest,
} from "@connectrpc/connect";
import { withTimeout } from "../../src/concurrency/abort.ts";
import { onAbort } from "../../src/concurrency/abort-listener.ts";
import type { Clock } from "../../src/concurrency/clock.ts";
import type { ControlPlane } from "../../src/control-plane/connection.ts";
import { KubeApiError } from "../../src/kube/errors.ts";
import type { KubeTransport } from "../../src/kube/transport.ts";

export type FaultyPeer = "control plane" | "Kubernetes";

export type PartFault =
  | { readonly kind: "errors" | "hangs" | "crash"; readonly peer: FaultyPeer }
  /** The stream of desired state brings these as well, as fast as they are taken. */
  | { readonly kind: "messages"; readonly states: Iterable<object> };

export type ControllerName = "cilium" | "deployments" | "sentinels";

export type FaultSwitches = Readonly<Record<ControllerName, FaultSwitch>>;

export class FaultSwitch {
  private current: PartFault | undefined;
  private onset = createOnset();

  /** What is to become of a call to this peer now. */
  faultOf(peer: FaultyPeer): PartFault["kind"] | undefined {
    return kindOf(this.current, peer);
  }

  /** Takes the place of the fault before. */
  begin(fault: PartFault): void {
    this.current = fault;
    this.onset.pass();
    this.onset = createOnset();
  }

  end(): void {
    this.current = undefined;
  }

  /** The values, and what each fault that begins meanwhile makes of the stream. */
  async *through<T>(
    values: AsyncIterable<T>,
    onFault: (fault: PartFault) => Promise<Iterable<T>>,
  ): AsyncGenerator<T> {
    const iterator = values[Symbol.asyncIterator]();
    let seen: PartFault | undefined;
    let next = iterator.next();
    try {
      for (;;) {
        if (this.current !== undefined && this.current !== seen) {
          seen = this.current;
          yield* await onFault(seen);
        }
        const first = await Promise.race([next, this.onset.passed]);
        if (first === "fault") continue;
        if (first.done) return;
        yield first.value;
        next = iterator.next();
      }
    } finally {
      next.catch(() => undefined);
      void iterator.return?.().catch(() => undefined);
    }
  }
}

function kindOf(fault: PartFault | undefined, peer: FaultyPeer): PartFault["kind"] | undefined {
  if (fault?.kind === "messages") return peer === "control plane" ? fault.kind : undefined;
  return fault?.peer === peer ? fault.kind : undefined;
}

function createOnset(): { readonly passed: Promise<"fault">; pass(): void } {
  let pass = (): void => undefined;
  const passed = new Promise<"fault">((resolve) => {
    pass = () => resolve("fault");
  });
  return { passed, pass: () => pass() };
}

// As long as the transport over HTTP waits.
const requestTimeoutMs = 60_000;

export function createFaultyTransport(
  transport: KubeTransport,
  parts: FaultSwitch,
  clock: Clock,
): KubeTransport {
  return {
    async send(request, signal) {
      switch (parts.faultOf("Kubernetes")) {
        case "errors":
          return refusal;
        case "hangs":
          return withTimeout(clock, requestTimeoutMs, signal, silence).catch((cause: unknown) => {
            signal.throwIfAborted();
            throw new KubeApiError("timeout", `${request.method} ${request.path}: no answer`, { cause });
          });
        case "crash":
          throw programmerError("a request");
        default:
          return transport.send(request, signal);
      }
    },
    async stream(request, signal) {
      switch (parts.faultOf("Kubernetes")) {
        case "errors":
          return { status: 500, refusal, values: nothing() };
        case "hangs":
          return silence(signal);
        case "crash":
          throw programmerError("a watch");
        default: {
          const opened = await transport.stream(request, signal);
          return { ...opened, values: parts.through(opened.values, (fault) => spoiltWatch(fault, signal)) };
        }
      }
    },
    close: () => transport.close(),
  };
}

const refusal = {
  status: 500,
  body: { kind: "Status", code: 500, reason: "InternalError", message: "out of order" },
};

async function spoiltWatch(fault: PartFault, signal: AbortSignal): Promise<[]> {
  const kind = kindOf(fault, "Kubernetes");
  if (kind === "errors") throw new KubeApiError("network", "the watch broke");
  if (kind === "hangs") await silence(signal);
  if (kind === "crash") throw programmerError("an open watch");
  return [];
}

/** On the server's side, where each call belongs to the one controller that makes calls of its kind. */
export function createFaultyCalls(switches: FaultSwitches): Interceptor {
  return (next) => async (request) => {
    const parts = switches[callerOf(request)];
    if (parts.faultOf("control plane") === "errors") throw outOfOrder();
    if (parts.faultOf("control plane") === "hangs") await silence(request.signal);
    const response = await next(request);
    if (!response.stream) return response;
    const message = parts.through(response.message, (fault) => spoiltStream(fault, request.signal));
    return { ...response, message };
  };
}

/** The methods of digests are the same for all kinds, and name the kind in the request. */
function callerOf({
  method,
  message,
}: Pick<UnaryRequest | StreamRequest, "method" | "message">): ControllerName {
  const name = `${method.name} ${Reflect.get(message, "kind")}`.toLowerCase();
  if (name.includes("deployment")) return "deployments";
  return name.includes("sentinel") ? "sentinels" : "cilium";
}

async function spoiltStream(fault: PartFault, signal: AbortSignal): Promise<[]> {
  const kind = kindOf(fault, "control plane");
  if (kind === "errors") throw outOfOrder();
  if (kind === "hangs") await silence(signal);
  return [];
}

function outOfOrder(): ConnectError {
  return new ConnectError("out of order", Code.Internal);
}

/**
 * What krane's own code could do wrong: every function throws, and a state throws when it is read. Floods
 * come in here as well, past the encoding, which would cost more than all that is looked at.
 */
export function createFaultyControlPlane(controlPlane: ControlPlane, parts: FaultSwitch): ControlPlane {
  return new Proxy(controlPlane, {
    get(target, name, receiver) {
      const part: unknown = Reflect.get(target, name, receiver);
      if (typeof part !== "function" || name === "close") return part;
      return (...given: unknown[]) => {
        if (parts.faultOf("control plane") === "crash") throw programmerError(String(name));
        const result: unknown = part.apply(target, given);
        return isAsyncIterable(result) ? parts.through(result, addedStates) : result;
      };
    },
  });
}

async function addedStates(fault: PartFault): Promise<Iterable<object>> {
  if (fault.kind === "messages") return fault.states;
  return kindOf(fault, "control plane") === "crash" ? [trap] : [];
}

const trap = {
  get version(): never {
    throw programmerError("a state");
  },
};

function programmerError(what: string): TypeError {
  return new TypeError(`${what}: undefined is not a function`);
}

function isAsyncIterable(value: unknown): value is AsyncIterable<object> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

function silence(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.throwIfAborted();
    onAbort(signal, () => reject(signal.reason));
  });
}

async function* nothing(): AsyncGenerator<never> {
  // A refused watch has no events.
}
