// What the benchmark in the box hands out.

/** When each step was seen, in milliseconds after the order. */
export interface Journey {
  /** The ReplicaSet exists. */
  readonly applied: number;
  /** Its pod exists. */
  readonly created: number;
  readonly scheduled: number;
  /** Its container runs. */
  readonly started: number;
  /** The first HTTP answer of the program. */
  readonly answered: number;
  readonly ready: number;
  /** The control plane has it as running. 0 on the raw side, which has no control plane. */
  readonly reported: number;
}

export interface NodeFigures {
  readonly krane: readonly Journey[];
  readonly raw: readonly Journey[];
  readonly states: readonly StateDelays[];
  readonly agent: AgentFigures;
}

export interface StateDelays {
  readonly name: string;
  /** From the event in which the API server shows the state until `krane why` names it. */
  readonly delaysMs: readonly number[];
}

export interface AgentFigures {
  /** From the start of the container's process until its health says started. */
  readonly startMs: readonly number[];
  /** As the kernel counts them for the container. */
  readonly anonymousBytes: number;
  readonly chargedBytes: number;
}

/** In the order in which they happen; the answer may come before or after Ready. */
export const steps: readonly { readonly name: keyof Journey; readonly what: string }[] = [
  { name: "applied", what: "order to ReplicaSet (control plane and krane)" },
  { name: "created", what: "ReplicaSet to pod (controller-manager)" },
  { name: "scheduled", what: "pod to scheduled (scheduler)" },
  { name: "started", what: "scheduled to container started (kubelet, containerd, gVisor)" },
  { name: "answered", what: "container started to first HTTP answer (the program)" },
  { name: "ready", what: "container started to Ready (kubelet's check, once a second)" },
  { name: "reported", what: "Ready to reported (krane and control plane)" },
];

/** How long each step took. A step that was seen before the one that it waits for took no time. */
export function partsOf(journey: Journey): Journey {
  const { applied, created, scheduled, started, answered, ready, reported } = journey;
  const from = (begin: number, end: number) => Math.max(end - begin, 0);
  return {
    applied,
    created: from(applied, created),
    scheduled: from(created, scheduled),
    started: from(scheduled, started),
    answered: from(started, answered),
    ready: from(started, ready),
    reported: from(ready, reported),
  };
}
