// Keeps code out of the program that its packages load and never use.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { OnLoadResult, Plugin } from "esbuild";

const root = fileURLToPath(new URL("../..", import.meta.url));
const headers = fileURLToPath(new URL("headers.ts", import.meta.url));

// By the names of undici's index, which also loads fetch, WebSocket, mocks, caches and proxies: 350 KB of code.
const connections = `
const Dispatcher = require("undici/lib/dispatcher/dispatcher.js");
Dispatcher.prototype.request = require("undici/lib/api/api-request.js");
exports.Client = require("undici/lib/dispatcher/client.js");
exports.Pool = require("undici/lib/dispatcher/pool.js");
exports.buildConnector = require("undici/lib/core/connect.js");
`;

export const lean: Plugin = {
  name: "lean",
  setup(build) {
    build.onResolve({ filter: /^undici$/ }, () => ({ path: "undici", namespace: "lean" }));
    build.onLoad({ filter: /^undici$/, namespace: "lean" }, () => ({
      contents: connections,
      resolveDir: root,
    }));
    // An ES module that imports `node:http` reads everything in it, on Node 24 also the WebSocket, which loads Node's fetch.
    build.onResolve({ filter: /^node:http$/ }, ({ kind }) =>
      kind === "import-statement" ? { path: "http", namespace: "lean" } : undefined,
    );
    build.onLoad({ filter: /^http$/, namespace: "lean" }, () => ({
      contents: 'module.exports = process.getBuiltinModule("http");',
    }));
    build.onLoad({ filter: /[\\/]node_modules[\\/]@connectrpc[\\/].*\.js$/ }, withOwnHeaders);
  },
};

/** To the packages for RPCs, headers are a list of fields. */
async function withOwnHeaders({ path }: { readonly path: string }): Promise<OnLoadResult | undefined> {
  const text = await readFile(path, "utf8");
  if (!text.includes("new Headers(")) return undefined;
  return { contents: `import { Headers } from ${JSON.stringify(headers)};\n${text}` };
}
