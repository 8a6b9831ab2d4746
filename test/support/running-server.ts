// A whole server within the process of the test, with its store at hand.
import assert from "node:assert/strict";
import { readTextFile } from "../../src/cli/process/text-file.ts";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSystemRandom } from "../../src/concurrency/random.ts";
import { renderProblems } from "../../src/config/render.ts";
import { parseServerConfig } from "../../src/server/config/server-config.ts";
import { runServer, type ServerDeps, type StartedServer } from "../../src/server/run-server.ts";
import { createQuietLog } from "./quiet-log.ts";
import { createStoreAdmin, type StoreAdmin } from "./store-admin.ts";

export interface RunningServer extends StartedServer {
  readonly admin: StoreAdmin;
  /** Settles with the server, also where nobody stops it. */
  readonly ended: Promise<void>;
  /** Rejects when it does not stop cleanly. */
  stop(): Promise<void>;
}

export async function startServer(
  flags: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
  more: Partial<Pick<ServerDeps, "dashboard" | "createToken" | "log">> = {},
): Promise<RunningServer> {
  const outcome = parseServerConfig({ env, flags });
  if (outcome.kind === "invalid") assert.fail(renderProblems(outcome.problems));
  const stopping = new AbortController();
  const clock = createSystemClock();
  return new Promise((resolve, reject) => {
    const ended = runServer(
      outcome.config,
      {
        clock,
        random: createSystemRandom(),
        log: createQuietLog(),
        build: { version: "0.0.0", revision: "test", nodeVersion: process.version },
        uid: process.getuid?.(),
        readTextFile,
        createToken: () => "made-up-token-of-the-test",
        ...more,
        progress: () => undefined,
        onStarted(started) {
          const stop = () => {
            stopping.abort();
            return ended;
          };
          resolve({ ...started, admin: createStoreAdmin(started.store, { clock, by: "test" }), ended, stop });
        },
      },
      stopping.signal,
    );
    ended.catch(reject);
  });
}
