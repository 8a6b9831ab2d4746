// A TLS server that answers every apply with the same bytes. It is not an API server: it does so little per request
// that a benchmark measures the client.
import { createHash } from "node:crypto";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { takeTask, tellParent } from "./parent.ts";

export interface ApplyServerTask {
  readonly cert: string;
  readonly key: string;
  readonly answer: string;
}

const { cert, key, answer } = takeTask<ApplyServerTask>();
const body = Buffer.from(answer);

// The comparison of two clients is fair only if both send the same.
let expected: string | undefined;

const server = createServer({ cert, key }, (request, response) => {
  const hash = createHash("sha1").update(`${request.method} ${request.url}\n`);
  request.on("data", (chunk: Buffer) => hash.update(chunk));
  request.on("end", () => {
    const seen = hash.digest("hex");
    expected ??= seen;
    response.writeHead(seen === expected ? 200 : 400, {
      "content-type": "application/json",
      "content-length": body.length,
    });
    response.end(body);
  });
});
server.listen(0, "127.0.0.1", () => {
  tellParent({ url: `https://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
