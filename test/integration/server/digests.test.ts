// The digests of the reference control plane as an agent requests them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { Secret } from "../../../src/config/secret.ts";
import { incarnationHeader, versionSeenHeader } from "../../../src/control-plane/incarnation.ts";
import { ClusterService } from "../../../src/gen/ctrl/v1/cluster_service_pb.ts";
import { BucketSums, bucketOf, decodeSums, encodeSums } from "../../../src/model/digest.ts";
import { createInMemoryControlPlane } from "../../../src/server/in-process.ts";
import { createQuietLog } from "../../support/quiet-log.ts";
import { aws, dev, roads, serveControlPlane, token } from "./served-control-plane.ts";

const kind = "deployment";
const hasCode = (code: Code) => (error: unknown) => ConnectError.from(error).code === code;
const deploymentOf = (id: string) => ({ deploymentId: id, k8sNamespace: "one", k8sName: `app-${id}` });

for (const road of roads) {
  test(`what a stream sends adds up to the digest, and a list names it, by ${road}`, async (t) => {
    const { admin, connect } = await serveControlPlane(t, road);
    for (const id of ["a", "b", "c"]) await admin.setDeployment(aws, deploymentOf(id));
    await admin.setDeployment(dev, deploymentOf("of another region"));
    await admin.deleteDeployment(aws, "b");
    const client = connect();
    const sums = new BucketSums();
    for (const deploymentId of ["a", "c"]) {
      const { content, version } = await client.getDesiredDeploymentState({ deploymentId });
      assert.equal(content?.id, deploymentId);
      sums.add({ ...content, version });
    }
    const headers: Headers[] = [];
    const digest = await client.getDesiredDigest({ kind }, { onHeader: (each) => headers.push(each) });
    assert.deepEqual(decodeSums(digest.buckets), sums.all());
    assert.deepEqual(decodeSums(digest.sum), [sums.whole]);
    assert.equal(digest.newestVersion, 4n);
    const same = await client.getDesiredDigest({ kind, knownSum: encodeSums([sums.whole]) });
    assert.deepEqual([same.sum, same.buckets.byteLength], [digest.sum, 0]);
    const number = bucketOf("a");
    const list = await client.listDesiredContents(
      { kind, buckets: [number] },
      { onHeader: (each) => headers.push(each) },
    );
    assert.deepEqual(
      list.buckets.map((each) => [each.number, each.entries.map(({ id, version }) => [id, version])]),
      [[number, [["a", 1n]]]],
    );
    assert.equal(headers.filter((each) => each.has(incarnationHeader)).length, 2);
    const stopped = await client.getDesiredDeploymentState({ deploymentId: "b" });
    assert.equal(stopped.content, undefined);
  });
}

test("a request that makes no sense is rejected", async (t) => {
  const { connect } = await serveControlPlane(t, "in process");
  const client = connect();
  for (const knownSum of [new Uint8Array(31), new Uint8Array(64)])
    await assert.rejects(client.getDesiredDigest({ kind, knownSum }), hasCode(Code.InvalidArgument));
  for (const buckets of [[], [256], [1, 1]])
    await assert.rejects(client.listDesiredContents({ kind, buckets }), hasCode(Code.InvalidArgument));
  for (const unknown of ["", "ingress", "toString"]) {
    await assert.rejects(client.getDesiredDigest({ kind: unknown }), hasCode(Code.Unimplemented));
    const list = client.listDesiredContents({ kind: unknown, buckets: [1] });
    await assert.rejects(list, hasCode(Code.Unimplemented));
  }
});

test("a control plane that names no incarnation has no digests", async () => {
  const deps = { clock: createSystemClock(), log: createQuietLog() };
  const plane = createInMemoryControlPlane({ tokens: [new Secret(token)], incarnation: "unnamed" }, deps);
  await plane.store.registerRegion(aws);
  const headers = { authorization: `Bearer ${token}`, "x-krane-region": aws };
  const client = createClient(ClusterService, plane.createTransport());
  await assert.rejects(client.getDesiredDigest({ kind }, { headers }), hasCode(Code.Unimplemented));
  await assert.rejects(
    client.listDesiredContents({ kind, buckets: [1] }, { headers }),
    hasCode(Code.Unimplemented),
  );
});

test("a replica that is behind an agent does not send it an old digest", async () => {
  const deps = { clock: createSystemClock(), log: createQuietLog() };
  const incarnation = { ordinal: 7n, id: "replica-7", parent: "", isReplica: true };
  const plane = createInMemoryControlPlane({ tokens: [new Secret(token)], incarnation }, deps);
  await plane.store.registerRegion(aws);
  plane.store.setCounter(aws, 4n);
  const client = createClient(ClusterService, plane.createTransport());
  const headers = (seen: string) => ({
    authorization: `Bearer ${token}`,
    "x-krane-region": aws,
    [incarnationHeader]: "7/replica-7/",
    [versionSeenHeader]: seen,
  });
  await assert.rejects(
    client.getDesiredDigest({ kind }, { headers: headers("5") }),
    hasCode(Code.Unavailable),
  );
  await assert.rejects(
    client.listDesiredContents({ kind, buckets: [1] }, { headers: headers("5") }),
    hasCode(Code.Unavailable),
  );
  assert.equal((await client.getDesiredDigest({ kind }, { headers: headers("4") })).newestVersion, 0n);
});
