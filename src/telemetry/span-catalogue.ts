// Every span of krane; docs/metrics.md is checked against this table in both directions. Streams and watches have
// none: they last for hours, and what comes of them has spans of its own.

// What a span is before it begins: its name, its kind, and which attributes it may have.

export type SpanValue = string | number | boolean;

export interface SpanDefinition {
  /** What every such span is called; of what it is follows in each one's name. */
  readonly name: string;
  /** What stands after that in a name, for the documentation. */
  readonly subject: string;
  readonly kind: "internal" | "client" | "server";
  /**
   * It begins a trace, or continues that of a caller, whatever goes on around it. Queues start work in the
   * asynchronous context of whoever woke them, and that is not what the work is for.
   */
  readonly isRoot: boolean;
  readonly meaning: string;
  /** Each with what it holds. Keys, names and codes only, never a text that somebody else wrote (K7). */
  readonly attributes: Readonly<Record<string, string>>;
}

export type AttributesOf<D extends SpanDefinition> = {
  readonly [Name in keyof D["attributes"]]?: SpanValue | undefined;
};
const rpcAttributes = {
  "rpc.service": "the service, with its package",
  "rpc.method": "the method",
  "rpc.code": "`ok`, or the code of the error",
} as const;

export const spanCatalogue = {
  reconcile: {
    name: "reconcile",
    subject: "controller",
    kind: "internal",
    isRoot: true,
    meaning: "One look at one key. It failed where its outcome is one of trouble.",
    attributes: {
      "krane.controller": "the name of the controller, such as `deployments`",
      "krane.key": "the key",
      "krane.version": "the version of the desired state, where there is one",
      "krane.outcome": "what came of it, where that is known",
    },
  },
  kubernetesRequest: {
    name: "kubernetes",
    subject: "verb resource",
    kind: "client",
    isRoot: false,
    meaning: "One request to the API server. It failed with every status from 400 on but 404.",
    attributes: {
      "k8s.verb": "`get`, `list`, `create`, `patch` or `delete`",
      "k8s.resource": "the kind, in the plural as in the path",
      "k8s.namespace": "the namespace, where there is one",
      "k8s.name": "the name, where there is one",
      "http.response.status_code": "the status, where there was an answer",
    },
  },
  controlPlaneCall: {
    name: "control plane",
    subject: "method",
    kind: "client",
    isRoot: true,
    meaning: "One call to the control plane: a question, a report or a heartbeat.",
    attributes: rpcAttributes,
  },
  vaultCall: {
    name: "vault",
    subject: "method",
    kind: "client",
    isRoot: false,
    meaning: "One call to a vault behind `vault.url`.",
    attributes: rpcAttributes,
  },
  servedCall: {
    name: "rpc",
    subject: "service/method",
    kind: "server",
    isRoot: true,
    meaning: "One call of a service of krane's that was let in on the RPC port.",
    attributes: rpcAttributes,
  },
} as const satisfies Readonly<Record<string, SpanDefinition>>;
