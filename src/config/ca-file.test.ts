import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { openCaFile, pemOf } from "./ca-file.ts";

const { signal } = new AbortController();
const pem = (name: string) =>
  readFile(fileURLToPath(new URL(`../../testdata/tls/${name}.cert.pem`, import.meta.url)), "utf8");
const [first, second] = await Promise.all([pem("first"), pem("second")]);

async function open() {
  const world = { nowMs: 0, reads: 0, failures: 0, content: async () => first };
  const ca = await openCaFile(
    "ca.pem",
    {
      readTextFile: () => {
        world.reads += 1;
        return world.content();
      },
      nowMs: () => world.nowMs,
      onFailure: () => void world.failures++,
    },
    signal,
  );
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  const askAfter = async (ms: number) => {
    world.nowMs += ms;
    const asked = pemOf(ca);
    await settle();
    return asked;
  };
  return { world, askAfter };
}

test("the first use after a change triggers a reload for the next use", async () => {
  const { world, askAfter } = await open();
  world.content = async () => second;
  assert.equal(await askAfter(4_999), first);
  assert.equal(world.reads, 1);
  assert.equal(await askAfter(1), first);
  assert.equal(await askAfter(0), second);
  assert.equal(world.reads, 2);
});

test("an unreadable or invalid file keeps the last good certificates in use, and is reported", async () => {
  const { world, askAfter } = await open();
  for (const content of [
    () => Promise.reject(new Error("gone")),
    async () => "",
    async () => "half a cert",
  ]) {
    world.content = content;
    await askAfter(5_000);
    assert.equal(await askAfter(0), first);
  }
  assert.equal(world.failures, 3);
  world.content = async () => second;
  await askAfter(5_000);
  assert.equal(await askAfter(0), second);
});

test("a hanging read blocks nothing, and no second one starts", async () => {
  const { world, askAfter } = await open();
  world.content = () => new Promise(() => undefined);
  for (let count = 0; count < 10; count++) assert.equal(await askAfter(5_000), first);
  assert.equal(world.reads, 2);
});

test("fixed certificates do not change", () => {
  assert.equal(pemOf("pem"), "pem");
});
