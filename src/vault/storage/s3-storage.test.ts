import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { secretOf } from "../../../test/support/vault-fixture.ts";
import { createS3Storage, regionOf } from "./s3-storage.ts";

const { signal } = new AbortController();

test("the region of an Amazon endpoint is read from its host", () => {
  const regions: readonly (readonly [string, string])[] = [
    ["s3.amazonaws.com", "us-east-1"],
    ["s3-external-1.amazonaws.com", "us-east-1"],
    ["s3.eu-central-1.amazonaws.com", "eu-central-1"],
    ["S3.EU-Central-1.amazonaws.com", "eu-central-1"],
    ["s3.eu-central-1.amazonaws.com.", "eu-central-1"],
    ["s3-us-west-2.amazonaws.com", "us-west-2"],
    ["s3.dualstack.us-west-2.amazonaws.com", "us-west-2"],
    ["s3-fips.us-east-2.amazonaws.com", "us-east-2"],
    ["s3-fips.dualstack.us-gov-west-1.amazonaws.com", "us-gov-west-1"],
    ["s3-fips-us-gov-west-1.amazonaws.com", "us-gov-west-1"],
    ["s3.cn-north-1.amazonaws.com.cn", "cn-north-1"],
    ["s3.dualstack.cn-northwest-1.amazonaws.com.cn", "cn-northwest-1"],
    ["bucket.vpce-1a2b3c4d-5e6f.s3.us-east-1.vpce.amazonaws.com", "us-east-1"],
    ["bucket.vpce-1a2b3c4d-5e6f-us-east-1a.s3.us-east-1.vpce.amazonaws.com", "us-east-1"],
    ["vpce-1a2b3c4d-5e6f.s3.ap-southeast-2.vpce.amazonaws.com", "ap-southeast-2"],
    ["bucket.vpce-1a2b3c4d-5e6f.s3.cn-north-1.vpce.amazonaws.com.cn", "cn-north-1"],
  ];
  for (const [host, region] of regions) assert.equal(regionOf(`https://${host}`), region, host);
});

test("other hosts, also those that only look like Amazon's, get the region that S3 servers accept", () => {
  const hosts = [
    "127.0.0.1:9000",
    "minio:9000",
    "account.r2.cloudflarestorage.com",
    "s3.eu-central-1.amazonaws.com.example.com",
    "s3.eu-central-1.example-amazonaws.com",
    "xs3.eu-central-1.amazonaws.com",
    "amazonaws.com",
  ];
  for (const host of hosts) assert.equal(regionOf(`https://${host}`), "auto", host);
});

async function signedRegion(t: { after(work: () => unknown): void }, region?: string): Promise<string> {
  const signatures: string[] = [];
  const server = createServer((request, response) => {
    signatures.push(request.headers.authorization ?? "");
    response
      .writeHead(404, { "content-type": "application/xml" })
      .end("<Error><Code>NoSuchKey</Code></Error>");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const storage = createS3Storage({
    url: `http://127.0.0.1:${port}`,
    bucket: "vault",
    accessKeyId: "AKID",
    accessKeySecret: secretOf("secret"),
    ...(region === undefined ? {} : { region }),
  });
  t.after(async () => {
    await storage.close();
    server.closeAllConnections();
    server.close();
  });
  assert.equal(await storage.read("keyring/env_1/LATEST", signal), undefined);
  return /Credential=AKID\/\d{8}\/([^/]+)\/s3\/aws4_request/.exec(signatures[0] ?? "")?.[1] ?? "unsigned";
}

test("requests are signed for the configured region, whatever the host", async (t) => {
  assert.equal(await signedRegion(t, "eu-west-3"), "eu-west-3");
});

test("without a configured region, requests are signed for the one of the host", async (t) => {
  assert.equal(await signedRegion(t), "auto");
});
