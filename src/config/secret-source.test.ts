import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { inspect } from "node:util";
import { ConfigError } from "./error.ts";
import { Secret, type SecretRef } from "./secret.ts";
import { createSecretSource } from "./secret-source.ts";

const { signal } = new AbortController();
const ref: SecretRef = { kind: "file", path: "/run/token", setting: "control.token" };

/** A file whose content, failures and speed the test decides. */
class FakeFile {
  content = "one\n";
  failure: Error | undefined;
  reads = 0;
  now = 1_000;
  failures: ConfigError[] = [];
  gate: Promise<void> | undefined;

  source(to: SecretRef = ref) {
    return createSecretSource(to, {
      readTextFile: async () => {
        this.reads++;
        const { content, failure } = this;
        await this.gate;
        if (failure !== undefined) throw failure;
        return content;
      },
      nowMs: () => this.now,
      onFailure: (error) => this.failures.push(error),
    });
  }
}

test("an inline secret is returned unchanged", async () => {
  const secret = new Secret("inline");
  const source = createSecretSource(
    { kind: "inline", secret },
    { readTextFile: () => assert.fail(), nowMs: () => 0 },
  );
  source.refresh();
  assert.equal(await source.current(signal), secret);
});

test("one newline at the end of the file is not part of the secret", async () => {
  for (const content of ["one", "one\n", "one\r\n"]) {
    const file = new FakeFile();
    file.content = content;
    assert.equal((await file.source().current(signal)).reveal(), "one");
  }
});

test("the file is read once, and again only after some seconds", async () => {
  const file = new FakeFile();
  const source = file.source();
  await source.current(signal);
  file.content = "two\n";
  file.now += 4_999;
  assert.equal((await source.current(signal)).reveal(), "one");
  assert.equal(file.reads, 1);
  file.now += 1;
  assert.equal((await source.current(signal)).reveal(), "two");
});

test("refresh makes the next call read the file immediately", async () => {
  const file = new FakeFile();
  const source = file.source();
  await source.current(signal);
  file.content = "two\n";
  source.refresh();
  assert.equal((await source.current(signal)).reveal(), "two");
  assert.equal((await source.current(signal)).reveal(), "two");
  assert.equal(file.reads, 2);
});

test("an unreadable file keeps the last good value, is reported, and is retried", async () => {
  const file = new FakeFile();
  const source = file.source();
  await source.current(signal);
  file.failure = new Error("EIO");
  for (const expected of [1, 2]) {
    file.now += 60_000;
    assert.equal((await source.current(signal)).reveal(), "one");
    assert.equal(file.failures.length, expected);
  }
  assert.equal((await source.current(signal)).reveal(), "one");
  assert.equal(file.failures.length, 2, "a failed read also counts as tried for some seconds");
  file.failure = undefined;
  file.content = "two";
  file.now += 60_000;
  assert.equal((await source.current(signal)).reveal(), "two");
});

test("a first failure is an error that names the setting and the path, and the next call retries", async () => {
  const file = new FakeFile();
  file.failure = new Error("ENOENT");
  const source = file.source();
  await assert.rejects(source.current(signal), (error) => {
    assert.ok(error instanceof ConfigError);
    assert.equal(error.code, "secret_unreadable");
    assert.equal(error.setting, "control.token_file");
    assert.equal(error.message, "control.token_file: cannot read /run/token");
    assert.equal(error.cause, file.failure);
    return true;
  });
  file.failure = undefined;
  assert.equal((await source.current(signal)).reveal(), "one");
});

test("invalid content is rejected without showing it", async () => {
  const cases: [string, string][] = [
    ["control.token", ""],
    ["control.token", "\n"],
    ["control.token", "CANARY\nCANARY\n"],
    ["registry.password", "CANARY\tCANARY"],
    ["vault.master_keys", "QQ==\nCANARY!\n"],
    ["vault.master_keys", "\n"],
    ["control.token", "CANARY".repeat(10_000)],
    ["no.such.setting", "CANARY"],
  ];
  for (const [setting, content] of cases) {
    const file = new FakeFile();
    file.content = content;
    await assert.rejects(file.source({ ...ref, setting }).current(signal), (error) => {
      assert.ok(error instanceof ConfigError);
      assert.equal(error.code, "secret_invalid");
      assert.ok(!inspect(error, { depth: 9, showHidden: true }).includes("CANARY"));
      return true;
    });
  }
});

test("master keys are one per line, blank lines aside", async () => {
  const file = new FakeFile();
  file.content = "QQ==\r\n\nQg==\n\n";
  const secret = await file.source({ ...ref, setting: "vault.master_keys" }).current(signal);
  assert.equal(secret.reveal(), "QQ==\nQg==");
});

test("an aborted wait rejects with the reason, even if a good value is known", async () => {
  const file = new FakeFile();
  const source = file.source();
  await source.current(signal);
  const reason = new Error("stop");
  await assert.rejects(source.current(AbortSignal.abort(reason)), reason);

  const controller = new AbortController();
  file.failure = new Error("aborted read");
  source.refresh();
  const waiting = source.current(controller.signal);
  controller.abort(reason);
  await assert.rejects(waiting, reason);
  assert.equal(file.failures.length, 0);
});

test("a slow earlier read does not overwrite the value of a later one", async () => {
  const file = new FakeFile();
  const source = file.source();
  const gate = new EventTarget();
  file.gate = once(gate, "open").then(() => undefined);
  const slow = source.current(signal);
  source.refresh();
  file.gate = undefined;
  file.content = "two";
  assert.equal((await source.current(signal)).reveal(), "two");
  gate.dispatchEvent(new Event("open"));
  assert.equal((await slow).reveal(), "two");
  assert.equal((await source.current(signal)).reveal(), "two");
});
