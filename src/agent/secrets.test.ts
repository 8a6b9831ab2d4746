import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { Secret } from "../config/secret.ts";
import { holdSecret } from "./secrets.ts";

function hold(files: Record<string, string>) {
  const clock = new FakeClock();
  const readTextFile = async (path: string) => {
    const text = files[path];
    if (text === undefined) throw new Error("no such file");
    return text;
  };
  const ref = { kind: "file", path: "p", setting: "registry.password" } as const;
  const held = holdSecret(ref, { clock, log: createQuietLog(), readTextFile }, new AbortController().signal);
  return { clock, held };
}

test("a secret in a file follows the file, and keeps its last value while the file is unreadable", async () => {
  const files: Record<string, string> = { p: "first" };
  const { clock, held } = hold(files);
  const secret = await held;
  assert.equal(secret.reveal(), "first");
  const stopping = new AbortController();
  const running = secret.keepFresh(stopping.signal);
  files["p"] = "second";
  await clock.advance(30_000);
  assert.equal(secret.reveal(), "second");
  delete files["p"];
  await clock.advance(60_000);
  assert.equal(secret.reveal(), "second");
  files["p"] = "third";
  await clock.advance(30_000);
  assert.equal(secret.reveal(), "third");
  const reason = new Error("stop");
  stopping.abort(reason);
  await assert.rejects(running, reason);
  assert.equal(clock.timerCount, 0);
});

test("an unreadable secret file is an error at startup", async () => {
  await assert.rejects(hold({}).held, { code: "secret_unreadable" });
});

test("an inline secret needs no file", async () => {
  const deps = { clock: new FakeClock(), log: createQuietLog(), readTextFile: () => assert.fail("no file") };
  const ref = { kind: "inline", secret: new Secret("x") } as const;
  assert.equal((await holdSecret(ref, deps, new AbortController().signal)).reveal(), "x");
});
