import assert from "node:assert/strict";
import { test } from "node:test";
import { annotationKeys } from "../model/labels.ts";
import { createSealKey, Seal, sealKeyBytes } from "../model/seal.ts";
import { announcement, leaderOf, otherControlPlane, ownAnnouncement } from "./leader-announcement.ts";
import { createLeaderProof } from "./leader-proof.ts";

const identity = "krane-abc_0123abcd";
const control = { url: "https://control.example" };
const tls = { certFile: "c", keyFile: "k" };

function urlOf(text: string, settings: Parameters<typeof leaderOf>[1] = {}): string {
  const leader = leaderOf({ identity, annotations: { [annotationKeys.leaderUrl]: text } }, settings);
  return typeof leader === "string" ? leader : leader.url.href;
}

test("what a leader announces is what a standby reads", () => {
  for (const [advertiseAddress, rpcPort, url] of [
    ["10.0.0.7", 8070, "http://10.0.0.7:8070/"],
    ["10.0.0.7", 80, "http://10.0.0.7/"],
    ["fd00::7", 8070, "http://[fd00::7]:8070/"],
    ["FD00:0:0::7", 8070, "http://[fd00::7]:8070/"],
  ] as const) {
    const annotations = announcement({ advertiseAddress, rpcPort, control }, identity);
    const leader = leaderOf({ identity, annotations }, {});
    assert.ok(typeof leader === "object");
    assert.deepEqual([leader.url.href, leader.name, leader.identity], [url, "krane-abc", identity]);
    const own = ownAnnouncement({ advertiseAddress, rpcPort }, identity);
    assert.deepEqual(own, { identity, origin: leader.url.origin });
  }
  assert.equal(announcement({ rpcPort: 8070, control }, identity)[annotationKeys.leaderUrl], undefined);
});

test("an address is used only if it is that of the holder, an IP address and a port, with TLS if this agent has TLS", () => {
  const none = "krane-abc leads, and announces no address (advertise_address): retry there";
  for (const text of [
    "",
    "krane-old_0123abcd http://10.0.0.7:8070",
    `${identity} http://metadata.internal:80`,
    `${identity} http://10.0.0.7:8070/path`,
    `${identity} http://user@10.0.0.7:8070`,
    `${identity} http://10.0.0.777:8070`,
    `${identity} ftp://10.0.0.7:8070`,
    `${identity} http://10.0.0.7:99999`,
  ])
    assert.equal(urlOf(text), none, text);
  assert.match(urlOf(`${identity} http://10.0.0.7:8070`, { tls }), /no TLS/);
  assert.equal(urlOf(`${identity} https://10.0.0.7:8070`, { tls }), "https://10.0.0.7:8070/");
  assert.equal(leaderOf(undefined, {}), "no agent leads yet; retry");
});

test("a proof holds for one process, one address, one certificate and one challenge, and with one of the keys", () => {
  const [old, current, other] = [1, 2, 3].map((byte) =>
    createSealKey(new Uint8Array(sealKeyBytes).fill(byte)),
  );
  assert.ok(old && current && other);
  const sealOf = (keys: readonly [typeof old, ...(typeof old)[]], clusterId = "c") =>
    new Seal({ clusterId, region: "r", keys });
  const connection = { identity, origin: "http://10.0.0.7:8070", certificate: "AA:BB", challenge: "x" };
  const proofOf = (seal: Seal) => seal.prove("leader", [identity, connection.origin, "AA:BB", "x"]);
  const verifier = createLeaderProof(sealOf([old, current]));
  assert.ok(verifier.isMadeBy(connection, proofOf(sealOf([old]))));
  assert.ok(verifier.isMadeBy(connection, proofOf(sealOf([old, current]))));
  assert.ok(!verifier.isMadeBy(connection, proofOf(sealOf([other]))));
  assert.ok(!verifier.isMadeBy(connection, proofOf(sealOf([current], "another cluster"))));
  for (const changed of [
    { identity: "x" },
    { origin: "http://10.0.0.8:8070" },
    { origin: "https://10.0.0.7:8070" },
    { certificate: "" },
    { challenge: "y" },
  ])
    assert.ok(!verifier.isMadeBy({ ...connection, ...changed }, proofOf(sealOf([current]))));
});

test("a standby notices a leader of another control plane, but not an older announcement or none", () => {
  const annotations = announcement({ rpcPort: 8070, control }, identity);
  const own = { ...control, url: "https://other.example" };
  assert.equal(otherControlPlane({ identity, annotations }, { control: own }), "https://control.example");
  assert.equal(otherControlPlane({ identity, annotations }, { control }), undefined);
  assert.equal(otherControlPlane({ identity: "next_0123abcd", annotations }, { control: own }), undefined);
  assert.equal(otherControlPlane({ identity, annotations: {} }, { control: own }), undefined);
  assert.equal(otherControlPlane(undefined, { control: own }), undefined);
});
