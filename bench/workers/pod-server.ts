// A server with pods that implements as much of list and watch as a reflector uses: the whole state as a stream or in
// pages, and then either a number of changes or silence.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { samplePod } from "../sample-objects.ts";
import { takeTask, tellParent } from "./parent.ts";

export interface PodServerTask {
  readonly pods: number;
  /** Whether the whole state is available as a stream; otherwise only in pages. */
  readonly streamsInitialState: boolean;
  /** How many changes a watch sends before it ends; with 0 it stays open and silent. */
  readonly changes: number;
}

const task = takeTask<PodServerTask>();
const resourceVersion = "9000000";

// Creating objects costs more than what is measured, so a watch repeats these.
const changed = Array.from({ length: 100 }, (_, index) => eventLine("MODIFIED", samplePod(index)));

const server = createServer((request, response) => {
  const query = new URL(request.url ?? "/", "http://localhost").searchParams;
  if (query.get("watch") !== "true") listPage(response, query);
  else if (query.get("sendInitialEvents") !== "true") void sendChanges(response);
  else if (task.streamsInitialState) void sendInitialState(response);
  else answer(response, 422, { kind: "Status", code: 422, reason: "Invalid" });
});
server.listen(0, "127.0.0.1", () => {
  tellParent({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});

function listPage(response: ServerResponse, query: URLSearchParams): void {
  const start = Number(query.get("continue") ?? 0);
  const end = Math.min(start + Number(query.get("limit") ?? task.pods), task.pods);
  const items = Array.from({ length: end - start }, (_, offset) => samplePod(start + offset));
  const more = end < task.pods ? { continue: String(end) } : {};
  answer(response, 200, { kind: "PodList", apiVersion: "v1", metadata: { resourceVersion, ...more }, items });
}

async function sendInitialState(response: ServerResponse): Promise<void> {
  begin(response);
  for (let index = 0; index < task.pods; index++) await write(response, eventLine("ADDED", samplePod(index)));
  const annotations = { "k8s.io/initial-events-end": "true" };
  await write(response, eventLine("BOOKMARK", { kind: "Pod", metadata: { resourceVersion, annotations } }));
}

async function sendChanges(response: ServerResponse): Promise<void> {
  begin(response);
  response.flushHeaders();
  for (let sent = 0; sent < task.changes; sent++) await write(response, changed[sent % changed.length] ?? "");
  if (task.changes > 0) response.end();
}

function begin(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json" });
}

async function write(response: ServerResponse, text: string): Promise<void> {
  if (response.destroyed || response.write(text)) return;
  await new Promise<void>((resolve) => {
    const done = () => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.on("drain", done).on("close", done);
  });
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function eventLine(type: string, object: unknown): string {
  return `${JSON.stringify({ type, object })}\n`;
}
