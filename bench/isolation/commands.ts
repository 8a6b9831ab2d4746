// The benchmark's commands to its workers: one POST per command, answered when it is done.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";

/** `handle` may return a value that JSON can carry. */
export async function serveCommands<C>(handle: (command: C) => Promise<unknown>): Promise<string> {
  const server = createServer((request, response) => {
    const done = async () => handle((await json(request)) as C);
    done().then(
      (result) => response.end(JSON.stringify(result ?? null)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  // Or a command that is sent just then finds its connection closed.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export async function command<C, R = void>(url: string, what: C, signal: AbortSignal): Promise<R> {
  const answer = await fetch(url, { method: "POST", body: JSON.stringify(what), signal });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${JSON.stringify(what)}: ${text}`);
  return JSON.parse(text) as R;
}
