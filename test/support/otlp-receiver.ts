// A collector on a loopback port that takes everything and keeps it, unpacked.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { gunzipSync } from "node:zlib";

export interface OtlpReceiver {
  readonly url: string;
  /** What came, with the path that it came to. */
  readonly received: readonly { readonly path: string; readonly body: Buffer }[];
}

export async function startOtlpReceiver(t: TestContext): Promise<OtlpReceiver> {
  const received: { path: string; body: Buffer }[] = [];
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      const isPacked = request.headers["content-encoding"] === "gzip";
      received.push({ path: request.url ?? "", body: isPacked ? gunzipSync(body) : body });
      response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, received };
}
