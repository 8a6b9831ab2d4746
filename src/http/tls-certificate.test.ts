import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { watchCertificate } from "./tls-certificate.ts";

const read = (name: string) =>
  readFileSync(new URL(`../../testdata/tls/${name}.pem`, import.meta.url), "utf8");

test("a fault is logged once while it lasts and again when it returns, and unchanged files are not a renewal", async () => {
  const clock = new FakeClock();
  const inUse = { cert: read("first.cert"), key: read("first.key") };
  const files = new Map([
    ["cert.pem", inUse.cert],
    ["key.pem", inUse.key],
  ]);
  let warnings = 0;
  let renewals = 0;
  const watch = watchCertificate({ certFile: "cert.pem", keyFile: "key.pem" }, inUse, () => renewals++, {
    clock,
    log: { ...createQuietLog(), warn: () => void warnings++ },
    readTextFile: async (path) => files.get(path) ?? assert.fail("no such file"),
  });
  const looks = async (count: number) => {
    for (let n = 0; n < count; n++) await clock.advance(10_000);
    return [warnings, renewals];
  };
  const breaks = [() => files.delete("cert.pem"), () => files.set("cert.pem", read("second.cert"))];
  let expected = 0;
  for (const breakFiles of breaks)
    for (let time = 0; time < 2; time++) {
      breakFiles();
      assert.deepEqual(await looks(3), [++expected, 0]);
      files.set("cert.pem", inUse.cert);
      assert.deepEqual(await looks(2), [expected, 0]);
    }
  files.set("cert.pem", read("second.cert")).set("key.pem", read("second.key"));
  assert.deepEqual(await looks(2), [expected, 1]);
  await watch.stop();
  assert.equal(clock.timerCount, 0);
});
