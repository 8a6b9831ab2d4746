// `krane dev` where there is a keyboard and a screen: what each key does is told to the person who pressed it, and with
// --headless the terminal is left alone.
import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { main } from "../../../src/cli/main.ts";
import { readTextFile } from "../../../src/cli/process/text-file.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeIo } from "../../support/fake-io.ts";
import { FakeTerminal } from "../../support/fake-terminal.ts";
import { temporaryFolder } from "./dev-world.ts";

async function startDev(t: TestContext, ...flags: readonly string[]) {
  const terminal = new FakeTerminal({ columns: 200, rows: 60 });
  const io = Object.assign(new FakeIo(), { readTextFile, terminal: () => terminal });
  const kubeconfig = join(await temporaryFolder(t), "kubeconfig");
  const ports = ["rpc", "metrics", "control", "kube"].flatMap((name) => [`--${name}-port`, "0"]);
  const args = ["dev", "--write-kubeconfig", kubeconfig, ...ports, ...flags];
  const exitCode = main(args, { NO_COLOR: "1" }, io);
  t.after(async () => {
    if (io.signalListeners > 0) io.send("SIGTERM");
    await exitCode;
  });
  return { terminal, io, exitCode };
}

test("every key shows its result on the screen, and q quits", async (t) => {
  const { terminal, exitCode } = await startDev(t);
  await terminal.shows(/^> deployment +krane-dev\/api-1 .*3\/3/m);
  const press = async (key: string, ...shown: readonly RegExp[]) => {
    terminal.press(key);
    for (const pattern of shown) await terminal.shows(pattern);
  };
  await press("+", /scaled api-1 to 4/, /api-1 .*4\/4/);
  await press("-", /scaled api-1 to 3/, /api-1 .*3\/3/);
  await press("e", /on ReplicaSet api-1; krane repaired it after \d+ ms/);
  await press("p", /killed pod api-1-/);
  await press("s", /cut every stream/);
  const [parked, because] = [/api-1 .*parked/, /api-1.*port must be from 1 to 65535, but is 99999/];
  await press("b", /requested port 99999 on api-1/, parked, because);
  await press("b", /requested port 8080 on api-1/);
  await press("c", /whoami:v1\.10 now crashes, in one object/, /api-1 .*failing/);
  await press("c", /whoami:v1\.10 runs again/);
  await press("n", /requested api-2 with .*whoami:v1\.11/, /krane-dev\/api-2/);
  await press("d", /requested the deletion of api-1/, /api-1.*gone/);
  terminal.press("q");
  assert.equal(await exitCode, 0);
});

test("--headless prints lines and leaves the terminal alone", async (t) => {
  const { terminal, io, exitCode } = await startDev(t, "--headless");
  await eventually("everything is ready", () =>
    assert.match(io.stdout.text, /all 3 deployments are ready\n/),
  );
  assert.equal(terminal.holds, 0);
  io.send("SIGINT");
  assert.equal(await exitCode, 0);
});
