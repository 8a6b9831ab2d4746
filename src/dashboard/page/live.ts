// One stream per browser, shared between its tabs: browsers allow six connections to a server over HTTP/1.1, and a seventh tab would
// wait for ever. The tab that holds the lock reads the stream and passes each message on; when it closes, another one takes over.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type WatchFleetResponse, WatchFleetResponseSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Browser } from "./browser.ts";
import type { Api } from "./model.ts";

export interface LiveDeps {
  readonly api: Api;
  readonly browser: Browser;
  onMessage(message: WatchFleetResponse): void;
  onLost(): void;
  onSessionEnded(): void;
}

const name = "krane-fleet";
const retryMs = [500, 1_000, 2_000, 5_000] as const;

/** Follows the fleet until the signal aborts. */
export function followFleet(deps: LiveDeps, signal: AbortSignal): void {
  const channel = new BroadcastChannel(name);
  channel.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (data instanceof Uint8Array) deps.onMessage(fromBinary(WatchFleetResponseSchema, data));
    else if (data === "lost") deps.onLost();
    else if (data === "ended") deps.onSessionEnded();
  };
  signal.addEventListener("abort", () => channel.close());
  // The tab that reads the stream answers, so that this one need not wait for the next message.
  channel.postMessage("hello");
  const read = () => readStream(deps, channel, signal);
  // Only pages over TLS, or of this machine, have locks. Without them, each tab has a stream of its own.
  const { locks } = navigator as { readonly locks?: LockManager };
  const reading = locks === undefined ? read() : locks.request(name, { signal }, read);
  reading.catch(() => undefined);
}

async function readStream(deps: LiveDeps, channel: BroadcastChannel, signal: AbortSignal): Promise<void> {
  const tell = (data: unknown) => {
    if (!signal.aborted) channel.postMessage(data);
  };
  let aheadMs: number | undefined;
  channel.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
    if (data !== "hello" || aheadMs === undefined) return;
    const nowMs = BigInt(Math.trunc(deps.browser.nowMs() + aheadMs));
    tell(toBinary(WatchFleetResponseSchema, create(WatchFleetResponseSchema, { nowMs })));
  });
  for (let failures = 0; !signal.aborted; ) {
    try {
      for await (const message of deps.api.watchFleet({}, { signal })) {
        failures = 0;
        aheadMs = Number(message.nowMs) - deps.browser.nowMs();
        tell(toBinary(WatchFleetResponseSchema, message));
        deps.onMessage(message);
      }
    } catch (error) {
      if (signal.aborted) return;
      aheadMs = undefined;
      const { code } = ConnectError.from(error);
      if (code === Code.Unauthenticated) {
        tell("ended");
        deps.onSessionEnded();
        return;
      }
      // A stream that reached its maximum duration is simply opened again.
      if (code !== Code.DeadlineExceeded) {
        tell("lost");
        deps.onLost();
      }
    }
    const delayMs = retryMs[Math.min(failures, retryMs.length - 1)] ?? 5_000;
    failures += 1;
    await new Promise<void>((resolve) => {
      const cancel = deps.browser.after(delayMs, resolve);
      signal.addEventListener("abort", () => {
        cancel();
        resolve();
      });
    });
  }
}
