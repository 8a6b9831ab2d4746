// Serves the dashboard beside the RPCs of a control plane: one page for every view, and its assets. The page gets everything that it
// shows from the admin API, so that a browser may do what its token may do, and nothing else.
import type { Writable } from "node:stream";
import type { HttpHandler, HttpRequest, HttpResponse } from "../http/http-handler.ts";
import { type PageFile, type PageFiles, plainOf } from "./page-files.ts";

/** Where the page is; the views are below. */
export const dashboardPath = "/dashboard/";

const assetsPath = `${dashboardPath}assets/`;

/**
 * Nothing is loaded from elsewhere, no script or style stands in the page itself, and no other page may frame it. With trusted types,
 * text can never become markup or code.
 */
const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const safety: Readonly<Record<string, string>> = {
  "content-security-policy": contentPolicy,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** `own` has the paths below the dashboard's that are no views; `otherwise` gets all paths elsewhere. */
export function serveDashboard(
  files: PageFiles,
  own: ReadonlyMap<string, HttpHandler>,
  otherwise: HttpHandler,
): HttpHandler {
  return (request, response) => {
    const [path = ""] = (request.url ?? "").split("?", 1);
    if (path !== "/" && path !== "/dashboard" && !path.startsWith(dashboardPath))
      return otherwise(request, response);
    for (const [name, value] of Object.entries(safety)) response.setHeader(name, value);
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      return end(response, 405);
    }
    const handle = own.get(path);
    if (handle !== undefined) return handle(request, response);
    if (!path.startsWith(dashboardPath)) {
      response.setHeader("location", dashboardPath);
      return end(response, 303);
    }
    if (!path.startsWith(assetsPath)) return sendFile(request, response, files.index, "no-store");
    // Looked up by its whole name: there is no path to walk.
    const asset = files.assets.get(path.slice(assetsPath.length));
    if (asset === undefined) return end(response, 404);
    return sendFile(request, response, asset, "public, max-age=31536000, immutable");
  };
}

function sendFile(request: HttpRequest, response: HttpResponse, file: PageFile, caching: string): void {
  const acceptsGzip = /\bgzip\b/.test(String(request.headers["accept-encoding"] ?? ""));
  const body = acceptsGzip ? file.gzip : plainOf(file);
  response.statusCode = 200;
  response.setHeader("content-type", file.contentType);
  response.setHeader("content-length", body.length);
  response.setHeader("cache-control", caching);
  response.setHeader("vary", "accept-encoding");
  if (acceptsGzip) response.setHeader("content-encoding", "gzip");
  const output: Writable = response;
  if (request.method === "HEAD") output.end();
  else output.end(body);
}

function end(response: HttpResponse, status: number): void {
  response.statusCode = status;
  response.setHeader("content-length", "0");
  response.setHeader("cache-control", "no-store");
  const output: Writable = response;
  output.end();
}
