// The catalogue of krane's spans: name, kind and attributes. A test compares docs/metrics.md with this table both ways.
// Streams and watches have no spans: they last for hours, and the work that they cause has its own.

export type SpanValue = string | number | boolean;

export interface SpanDefinition {
  /** The first part of the span's name, the same for all of them. */
  readonly name: string;
  /** What follows in the name, for the documentation. */
  readonly subject: string;
  readonly kind: "internal" | "client" | "server";
  /**
   * It begins a trace, or continues that of a remote caller, and ignores the current span: a queue starts work in the
   * asynchronous context of the code that enqueued it, which is not its parent.
   */
  readonly isRoot: boolean;
  readonly meaning: string;
  /** Attribute to description. Keys, names and codes only, never text from outside krane (K7). */
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
    meaning: "One reconcile of one key. An error if the object is out of sync.",
    attributes: {
      "krane.controller": "the name of the controller, such as `deployments`",
      "krane.key": "the key",
      "krane.version": "the version of the desired state, if any",
      "krane.outcome": "the outcome, if known",
    },
  },
  kubernetesRequest: {
    name: "kubernetes",
    subject: "verb resource",
    kind: "client",
    isRoot: false,
    meaning: "One request to the API server. An error for every status from 400 on, except 404.",
    attributes: {
      "k8s.verb": "`get`, `list`, `create`, `patch` or `delete`",
      "k8s.resource": "the kind, in the plural as in the path",
      "k8s.namespace": "the namespace, if any",
      "k8s.name": "the name, if any",
      "http.response.status_code": "the status, if there was a response",
    },
  },
  controlPlaneCall: {
    name: "control plane",
    subject: "method",
    kind: "client",
    isRoot: true,
    meaning: "One call to the control plane: a request for desired state, a report or a heartbeat.",
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
    meaning: "One call that krane served on the RPC port, if it was admitted.",
    attributes: rpcAttributes,
  },
} as const satisfies Readonly<Record<string, SpanDefinition>>;
