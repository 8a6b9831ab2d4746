// Decodes a watch to its end, through krane's client from a server, or as the raw limit: the same
// bytes from memory, split at newlines and parsed, with no socket, no limits and no checks.
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { fixedCredential } from "../../src/kube/credentials.ts";
import { createHttpTransport } from "../../src/kube/http-transport.ts";
import { pods } from "../../src/kube/resources.ts";
import { samplePod } from "../sample-objects.ts";
import { finish, takeTask } from "./parent.ts";
import { cpuSeconds, peakResidentMb } from "./resources.ts";

export interface WatchTask {
  readonly side: "krane" | "raw";
  readonly url: string;
  readonly events: number;
}

export interface WatchResult {
  readonly decoded: number;
  readonly cpuSeconds: number;
  readonly peakMb: number;
}

const newline = 0x0a;
const chunkBytes = 64 * 1024;
const distinctEvents = 100;

async function decodeWithKrane({ url }: WatchTask): Promise<number> {
  const endpoint = { server: url, credentials: fixedCredential({}) };
  const transport = createHttpTransport({ endpoint, connections: 1 }, { clock: createSystemClock() });
  const { signal } = new AbortController();
  let decoded = 0;
  for await (const event of createKubeApi(transport).watch(pods, { resourceVersion: "1" }, signal)) {
    if (event.type === "MODIFIED") decoded += 1;
  }
  await transport.close();
  return decoded;
}

function sampleStream(): Buffer {
  const lines = Array.from({ length: distinctEvents }, (_, index) =>
    JSON.stringify({ type: "MODIFIED", object: samplePod(index) }),
  );
  return Buffer.from(`${lines.join("\n")}\n`);
}

function decodeRaw(stream: Buffer, events: number): number {
  let decoded = 0;
  let rest: Buffer = Buffer.alloc(0);
  for (let position = 0; decoded < events; position = (position + chunkBytes) % stream.length) {
    const chunk = stream.subarray(position, position + chunkBytes);
    // The last chunk of the stream may be short; the stream then starts again.
    if (chunk.length < chunkBytes) position = -chunkBytes;
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      const line = Buffer.concat([rest, chunk.subarray(start, end)]);
      rest = Buffer.alloc(0);
      start = end + 1;
      if (JSON.parse(line.toString("utf8")).type === "MODIFIED") decoded += 1;
    }
    rest = Buffer.concat([rest, chunk.subarray(start)]);
  }
  return decoded;
}

const task = takeTask<WatchTask>();
const stream = task.side === "raw" ? sampleStream() : undefined;
const before = cpuSeconds();
const decoded = stream === undefined ? await decodeWithKrane(task) : decodeRaw(stream, task.events);
const result: WatchResult = { decoded, cpuSeconds: cpuSeconds() - before, peakMb: peakResidentMb() };
finish(result);
