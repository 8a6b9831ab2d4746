// Opens a port that serves HTTP/1.1 and HTTP/2, with or without TLS. When stop() has resolved, the port is closed and no
// connection is left (K10).
import type { Server } from "node:http";
import type { Clock } from "../concurrency/clock.ts";
import type { Log } from "../telemetry/log.ts";
import { HttpAdmission } from "./http-admission.ts";
import type { HttpHandler } from "./http-handler.ts";
import { defaultHttpLimits, type HttpLimits } from "./http-limits.ts";
import { HttpRequests } from "./http-requests.ts";
import { createCleartextServers, createTlsServers } from "./http-servers.ts";
import { explainListenFailure } from "./service-error.ts";
import { loadCertificate, type TlsFiles, watchCertificate } from "./tls-certificate.ts";
import { UnreadResponses } from "./unread-responses.ts";

export interface HttpPortOptions {
  /** 0 picks a free port. */
  readonly port: number;
  /** The address to listen on. Default: all addresses. */
  readonly host?: string | undefined;
  /** The setting that has the port, for error messages. */
  readonly setting: string;
  /** The setting that has the address, if it is another one. */
  readonly hostSetting?: string;
  readonly tls?: TlsFiles | undefined;
  readonly limits?: Partial<HttpLimits>;
}

export interface HttpPortDeps {
  readonly clock: Clock;
  readonly log: Log;
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
}

export interface HttpPort {
  readonly port: number;
  /** Rejects when the port fails before it is stopped. */
  readonly failed: Promise<never>;
  /** Stops accepting connections, waits for requests in flight, then closes the remaining connections. */
  stop(signal: AbortSignal): Promise<void>;
}

export async function startHttpPort(
  handler: HttpHandler,
  options: HttpPortOptions,
  deps: HttpPortDeps,
  signal: AbortSignal,
): Promise<HttpPort> {
  const limits = { ...defaultHttpLimits, ...options.limits };
  const { tls } = options;
  const certificate = tls && (await loadCertificate(tls, deps, signal));
  signal.throwIfAborted();
  const admission = new HttpAdmission(limits, deps);
  const parts = { ...deps, admission, unread: new UnreadResponses(limits) };
  const requests = new HttpRequests(handler, limits, parts);
  const servers = certificate
    ? createTlsServers(limits, certificate, requests, parts)
    : createCleartextServers(limits, requests, parts);
  const { listener, renewCertificate } = servers;
  const port = await listen(listener, options);
  const failed = failureOf(listener, deps.log);
  const renewal =
    tls && certificate && renewCertificate && watchCertificate(tls, certificate, renewCertificate, deps);

  const stop = async (hurry: AbortSignal) => {
    const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
    servers.closeConnections();
    await Promise.all([renewal?.stop(), drained(closed, limits.drainTimeoutMs, deps.clock, hurry)]);
    const count = admission.destroyAll();
    if (count > 0) deps.log.warn("closed connections that were still open at shutdown", { count });
    await closed;
  };
  let stopped: Promise<void> | undefined;
  return {
    port,
    failed,
    stop(hurry) {
      stopped ??= stop(hurry);
      return stopped;
    },
  };
}

function listen(listener: Server, options: HttpPortOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException) => {
      reject(explainListenFailure(options, error));
    };
    listener.once("error", onError);
    listener.listen({ port: options.port, host: options.host }, () => {
      listener.off("error", onError);
      const address = listener.address();
      resolve(typeof address === "object" && address ? address.port : options.port);
    });
  });
}

function failureOf(listener: Server, log: Log): Promise<never> {
  return new Promise((_, reject) => {
    listener.on("error", (error: NodeJS.ErrnoException) => {
      // For example, no file descriptors left: one connection is lost, but the port still works.
      if (error.syscall === "accept") log.error("connection not accepted", { error });
      else reject(error);
    });
  });
}

/** Resolves when all connections have ended, after the timeout, or when `hurry` aborts. */
function drained(closed: Promise<void>, timeoutMs: number, clock: Clock, hurry: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      timer.cancel();
      hurry.removeEventListener("abort", end);
      resolve();
    };
    const timer = clock.setTimer(timeoutMs, end);
    hurry.addEventListener("abort", end, { once: true });
    if (hurry.aborted) end();
    void closed.then(end);
  });
}
