// The list of field names that a log line can have. One name per thing makes logs searchable; and because every value is
// a primitive, a secret (an object that redacts itself) cannot be passed (K7).

type FieldType = "string" | "number" | "boolean" | "version";

interface FieldDefinition {
  readonly type: FieldType;
  readonly meaning: string;
}

function field<T extends FieldType>(
  type: T,
  meaning: string,
): { readonly type: T; readonly meaning: string } {
  return { type, meaning };
}

export const logFieldCatalogue = {
  // Where in krane
  controller: field("string", "the name of the controller, such as deployments"),
  component: field("string", "the part of krane that logs, if it is not a controller"),
  step: field("string", "the step of starting or stopping"),
  operation: field("string", "what was being done: apply, delete, report, resync ..."),
  outcome: field("string", "how it ended"),
  reason: field("string", "why, in words"),
  state: field("string", "the state that was entered"),
  previousState: field("string", "the state that was left"),
  // Which object
  key: field("string", "the key of the work queue"),
  kind: field("string", "the Kubernetes kind"),
  namespace: field("string", "the Kubernetes namespace"),
  name: field("string", "the Kubernetes name"),
  uid: field("string", "the Kubernetes UID"),
  fieldManager: field("string", "the field manager that owns or changed it"),
  keyId: field("string", "the id of the key that krane seals with"),
  authority: field(
    "string",
    "why a deletion is allowed: explicit delete, confirmed absence, operator release or unused",
  ),
  field: field("string", "the field of a Kubernetes object that was repaired"),
  before: field("string", "its value before the repair, without secrets"),
  after: field("string", "its value after the repair, without secrets"),
  workspaceId: field("string", "the workspace"),
  projectId: field("string", "the project"),
  environmentId: field("string", "the environment"),
  deploymentId: field("string", "the deployment"),
  sentinelId: field("string", "the sentinel"),
  policyId: field("string", "the network policy"),
  image: field("string", "the image of a container"),
  version: field("version", "the desired version, as the control plane numbers it"),
  resourceVersion: field("string", "the version of an object, as the API server numbers it"),
  // Which call
  method: field("string", "the RPC or HTTP method"),
  path: field("string", "the path of an HTTP request, without its query"),
  verb: field("string", "the verb of a Kubernetes request"),
  host: field("string", "host and port of the other side; never a URL, which could hold a password"),
  code: field("string", "the RPC code or Kubernetes reason of a response"),
  status: field("number", "the HTTP status of a response"),
  requestId: field("string", "the id that ties together the lines of one request"),
  // How long, how often
  durationMs: field("number", "how long it took"),
  delayMs: field("number", "how long until the next attempt"),
  timeoutMs: field("number", "the limit that was exceeded"),
  attempt: field("number", "the number of the attempt, from 1"),
  count: field("number", "how many"),
  term: field("number", "the number of a leader's term"),
  limit: field("number", "how many at most"),
  // The process and its settings
  setting: field("string", "the setting, as a path in krane.toml"),
  remedy: field("string", "what to do about it"),
  file: field("string", "the path of a file"),
  address: field("string", "the address of a listener"),
  port: field("number", "the port of a listener"),
  signal: field("string", "the signal that was received, or the telemetry signal: traces, metrics"),
  enabled: field("boolean", "whether a feature is on"),
} satisfies Record<string, FieldDefinition>;

interface ValueOf {
  string: string;
  number: number;
  boolean: boolean;
  version: bigint;
}

type Catalogue = typeof logFieldCatalogue;

export type LogFields = {
  readonly [Name in keyof Catalogue]?: ValueOf[Catalogue[Name]["type"]] | undefined;
} & {
  /** Any thrown value; described by type, message, code and stack, with its causes. */
  readonly error?: unknown;
};

export type LogFieldName = keyof Catalogue;

export function isLogFieldName(name: string): name is LogFieldName {
  return Object.hasOwn(logFieldCatalogue, name);
}
