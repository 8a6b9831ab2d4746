// `krane dev` has no passwords that a neighbour on the network would need, so it must not be there for one.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { startedRegion } from "./dev-world.ts";

/** Every address of this machine but the one that is meant. */
function otherAddresses(): readonly string[] {
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const others = own.filter(({ scopeid }) => !scopeid).map(({ address }) => address);
  // On Linux the whole of 127/8 leads here.
  if (process.platform === "linux") others.push("127.0.0.2");
  return others.filter((address) => address !== "127.0.0.1");
}

async function isReachable(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port });
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

test("every port of krane dev is open to this machine alone", async (t) => {
  const { urls } = await startedRegion(t);
  const others = otherAddresses();
  assert.ok(others.length > 0, "there is no other address to try");
  for (const [name, url] of Object.entries(urls)) {
    const { hostname, port } = new URL(url);
    assert.equal(await isReachable(hostname, Number(port)), true, name);
    for (const host of others) assert.equal(await isReachable(host, Number(port)), false, `${name}: ${host}`);
  }
});
