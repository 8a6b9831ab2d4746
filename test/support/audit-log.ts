// Reads the API server's audit log: the only witness of which calls were really
// made, whatever the caller believes.
//
// An entry may be written a moment after the caller has its answer, so tests
// expect a count with `eventually`.

import { open, readFile } from "node:fs/promises";

export interface AuditedCall {
  readonly user: string;
  readonly userAgent: string;
  /** As RBAC names it: `get`, `list`, `watch`, `create`, `patch`, `delete` ... A server-side apply is a `patch`. */
  readonly verb: string;
  readonly requestUri: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly statusCode: number;
  /** When the API server got the request, and when it answered, with microseconds. */
  readonly receivedAt: string;
  readonly answeredAt: string;
}

export async function countAuditedCalls(
  path: string,
  matches: (call: AuditedCall) => boolean,
): Promise<number> {
  return (await loadAuditedCalls(path)).filter(matches).length;
}

/** Every call once, also a watch, which is logged when it opens and again when it ends. */
export async function loadAuditedCalls(path: string): Promise<readonly AuditedCall[]> {
  return parseCalls(await readFile(path, "utf8"));
}

/** Reads a log that grows to hundreds of megabytes piece by piece. */
export class AuditTail {
  private readonly path: string;
  private offset = 0;

  constructor(path: string) {
    this.path = path;
  }

  /** What was logged since the last time. */
  async read(): Promise<readonly AuditedCall[]> {
    const file = await open(this.path);
    try {
      const bytes = Buffer.alloc((await file.stat()).size - this.offset);
      const { bytesRead } = await file.read(bytes, 0, bytes.length, this.offset);
      const whole = bytes.subarray(0, bytes.subarray(0, bytesRead).lastIndexOf("\n") + 1);
      this.offset += whole.length;
      return parseCalls(whole.toString("utf8"));
    } finally {
      await file.close();
    }
  }
}

function parseCalls(text: string): readonly AuditedCall[] {
  const calls = new Map<string, AuditedCall>();
  // What follows the last newline is an entry still being written.
  for (const line of text.split("\n").slice(0, -1)) {
    const entry = record(JSON.parse(line));
    const object = record(entry["objectRef"]);
    calls.set(word(entry["auditID"]), {
      user: word(record(entry["user"])["username"]),
      userAgent: word(entry["userAgent"]),
      verb: word(entry["verb"]),
      requestUri: word(entry["requestURI"]),
      group: word(object["apiGroup"]),
      resource: word(object["resource"]),
      subresource: word(object["subresource"]),
      namespace: word(object["namespace"]),
      name: word(object["name"]),
      statusCode: Number(record(entry["responseStatus"])["code"] ?? 0),
      receivedAt: word(entry["requestReceivedTimestamp"]),
      answeredAt: word(entry["stageTimestamp"]),
    });
  }
  return [...calls.values()];
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

function word(value: unknown): string {
  return typeof value === "string" ? value : "";
}
