// A KubeTransport over a simulated network. It keeps the promises that src/kube/http-transport.ts makes: deadlines, the
// permit of a write, and the limit on the silence of a watch.
import type { ApiHandler, ApiRequest, ApiResponse, WholeResponse } from "@krane/kube-apiserver";
import { linkSignals } from "../src/concurrency/abort.ts";
import { onAbort } from "../src/concurrency/abort-listener.ts";
import type { Timer } from "../src/concurrency/clock.ts";
import { KubeApiError } from "../src/kube/errors.ts";
import type { KubeRequest, KubeResponse, KubeStream, KubeTransport } from "../src/kube/transport.ts";
import type { Link } from "./link.ts";
import { MessageQueue } from "./message-queue.ts";
import type { SimProcess } from "./sim-process.ts";

const requestTimeoutMs = 60_000;
const watchSilenceMs = 90_000;

export interface KubeLinkDeps {
  readonly process: SimProcess;
  readonly link: Link;
  /** The API server, as this client reaches it. */
  readonly handler: ApiHandler;
}

export function createKubeLink({ process, link, handler }: KubeLinkDeps): KubeTransport {
  const closing = new AbortController();
  const exchange = (request: KubeRequest, signal: AbortSignal, open: AbortSignal) =>
    new Exchange({ process, link, handler }, request, [signal, closing.signal]).run(open);
  return {
    async send(request, signal) {
      const response = await exchange(request, signal, process.gone);
      if (response.kind === "whole") return responseOf(response);
      response.close();
      throw new KubeApiError("malformed", `${request.path} returned a stream`);
    },
    async stream(request, signal): Promise<KubeStream> {
      const open = new AbortController();
      const response = await exchange(request, signal, open.signal);
      if (response.kind === "whole")
        return {
          status: response.status,
          refusal: responseOf(response),
          values: new MessageQueue(() => undefined),
        };
      const watch = new Watch({ process, link, handler }, request, open);
      const stops = [signal, closing.signal, process.gone].map((each) =>
        onAbort(each, () => watch.stop(each.reason)),
      );
      watch.follow(response.values, () => {
        for (const stop of stops) stop();
      });
      return { status: 200, values: watch.queue };
    },
    async close() {
      closing.abort(new KubeApiError("network", "the transport was closed"));
    },
  };
}

/** One request and its response. */
class Exchange {
  private readonly deps: KubeLinkDeps;
  private readonly request: KubeRequest;
  private readonly signals: readonly AbortSignal[];
  private isOver = false;
  private readonly releases: (() => void)[] = [];

  constructor(deps: KubeLinkDeps, request: KubeRequest, signals: readonly AbortSignal[]) {
    this.deps = deps;
    this.request = request;
    this.signals = signals;
  }

  /** `open` ends a watch that the response is. */
  run(open: AbortSignal): Promise<ApiResponse> {
    const { process, link } = this.deps;
    return new Promise((resolve, reject) => {
      if (!process.isAlive) return;
      for (const signal of this.signals) signal.throwIfAborted();
      this.request.permit?.check();
      const { method, path, permit } = this.request;
      // A client that gives up resets its connection, and the server stops what it does for the request.
      const served = linkSignals(open);
      const fail = (error: unknown) => {
        this.end(() => reject(error));
        served.abort();
      };
      const limits = [requestTimeoutMs, ...(permit === undefined ? [] : [permit.timeoutMs])];
      for (const limitMs of limits) {
        const timer = process.clock.setTimer(limitMs, () =>
          fail(new KubeApiError("timeout", `${method} ${path}: timed out after ${limitMs} ms`)),
        );
        this.releases.push(() => timer.cancel());
      }
      for (const signal of this.signals) this.releases.push(onAbort(signal, () => fail(signal.reason)));
      const fate = link.fateOf("request", this.name);
      if (!process.isAlive) return;
      link.carry(() => {
        if (fate?.kind === "lose" || this.isOver) return;
        this.deps.handler(requestOf(this.request), served.signal).then((response) => {
          if (response.kind === "whole") served.release();
          this.answer(response, resolve);
        }, fail);
      }, link.notBefore(fate));
    });
  }

  private answer(response: ApiResponse, resolve: (response: ApiResponse) => void): void {
    const { process, link } = this.deps;
    const fate = link.fateOf("response", this.name);
    if (fate?.kind === "lose" || !process.isAlive) {
      discard(response);
      return;
    }
    const deliver = () =>
      process.wake(() => {
        if (this.isOver) discard(response);
        else this.end(() => resolve(response));
      });
    link.carry(deliver, link.notBefore(fate));
  }

  private get name(): string {
    return `${this.request.method} ${this.request.path}`;
  }

  private end(settle: () => void): void {
    if (this.isOver) return;
    this.isOver = true;
    for (const release of this.releases) release();
    settle();
  }
}

function discard(response: ApiResponse): void {
  if (response.kind === "stream") response.close();
}

/** An open watch. */
class Watch {
  readonly queue: MessageQueue<unknown>;
  private readonly deps: KubeLinkDeps;
  private readonly path: string;
  private readonly connection: AbortController;
  private silence: Timer | undefined;
  private lastDueMs = 0;
  private onStopped: () => void = () => undefined;

  constructor(deps: KubeLinkDeps, { path }: KubeRequest, connection: AbortController) {
    this.deps = deps;
    this.path = path;
    this.connection = connection;
    this.queue = new MessageQueue(() => this.stop(new Error("not read any more")));
  }

  follow(values: AsyncIterable<unknown>, onStopped: () => void): void {
    const { link } = this.deps;
    const forget = link.open({
      cut: (how) => this.arrive(() => (how === "end" ? this.finish() : this.stop(this.broken("cut")))),
    });
    this.onStopped = () => {
      forget();
      onStopped();
    };
    this.awaitNext();
    void this.send(values);
  }

  /** Ends it for the reader, and at the server. */
  stop(reason: unknown): void {
    this.queue.break(reason);
    this.release();
  }

  private finish(): void {
    this.queue.end();
    this.release();
  }

  private release(): void {
    this.silence?.cancel();
    this.onStopped();
    this.connection.abort();
  }

  private async send(values: AsyncIterable<unknown>): Promise<void> {
    const { link } = this.deps;
    try {
      for await (const value of values) {
        const fate = link.fateOf("event", `watch ${this.path}`);
        if (fate?.kind === "cut") return this.arrive(() => this.stop(this.broken("cut inside a line")));
        this.lastDueMs = Math.max(this.lastDueMs, link.eventNotBefore(fate));
        this.arrive(() => {
          this.queue.push(value);
          this.awaitNext();
        });
      }
      this.arrive(() => this.finish());
    } catch (error) {
      // The connection was closed by this side.
      if (!this.connection.signal.aborted) throw error;
    }
  }

  private arrive(deliver: () => void): void {
    const { link, process } = this.deps;
    this.lastDueMs = link.carry(() => process.wake(deliver), this.lastDueMs);
  }

  private awaitNext(): void {
    this.silence?.cancel();
    if (this.connection.signal.aborted) return;
    this.silence = this.deps.process.clock.setTimer(watchSilenceMs, () => this.stop(this.broken("silent")));
  }

  private broken(why: string): KubeApiError {
    return new KubeApiError("network", `GET ${this.path}: ${why}`);
  }
}

function requestOf({ method, path, query, contentType, accept, body }: KubeRequest): ApiRequest {
  return {
    method,
    path,
    ...(query !== undefined && { query }),
    ...(contentType !== undefined && { contentType }),
    ...(accept !== undefined && { accept }),
    ...(body !== undefined && { body }),
  };
}

function responseOf({ status, body, retryAfterSeconds }: WholeResponse): KubeResponse {
  return { status, body, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
}
