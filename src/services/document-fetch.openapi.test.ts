import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { type DocumentAddress, type DocumentOutcome, pathProblem, scrapeDocument } from "./document-fetch.ts";

const never = new AbortController().signal;

for (const path of [
  "/",
  "/openapi.json",
  "/v1/schema?format=json&x=%2F..",
  "/a/...",
  "/a%20b",
  "/a;v=1/~me/@x",
  `/${"a".repeat(2047)}`,
])
  test(`${path.slice(0, 40)} is a valid path`, () => assert.equal(pathProblem(path), undefined));

for (const path of [
  "",
  "openapi.json",
  "//evil.example/x",
  "http://evil.example/x",
  "/a/../b",
  "/..",
  "/a/%2e%2E/b",
  "/.",
  "/a/%2e",
  "/a b",
  "/a\r\nHost: evil.example",
  "/a\u0000",
  "/ü",
  "/a#b",
  "/a\\b",
  "/%zz",
  "/%2",
  `/${"a".repeat(2048)}`,
])
  test(`${JSON.stringify(path).slice(0, 40)} is rejected`, () => assert.ok(pathProblem(path)));

describe("a scrape", () => {
  const refusedWith = (code: Code) => (error: unknown) =>
    error instanceof ConnectError && error.code === code;
  const asked: DocumentAddress[] = [];
  const answering = (outcome: DocumentOutcome) => async (address: DocumentAddress) => {
    asked.push(address);
    return outcome;
  };
  const document = answering({ kind: "document", text: "{}" });
  const target = { sockets: [{ ip: "10.0.0.7", port: 3000 }] };

  test("asks one instance, at the address that Kubernetes reports", async () => {
    assert.equal(await scrapeDocument(target, "/openapi.json", document, never), "{}");
    assert.deepEqual(asked.splice(0), [{ ip: "10.0.0.7", port: 3000, path: "/openapi.json" }]);
  });

  test("is rejected without a deployment, without a running instance, and for an invalid path", async () => {
    const scrape = (some: typeof target | undefined, path = "/") =>
      scrapeDocument(some, path, document, never);
    await assert.rejects(scrape(undefined), refusedWith(Code.NotFound));
    await assert.rejects(scrape({ sockets: [] }), refusedWith(Code.FailedPrecondition));
    await assert.rejects(scrape(target, "//x"), refusedWith(Code.InvalidArgument));
    assert.deepEqual(asked, []);
  });

  for (const ip of [
    "127.0.0.1",
    "169.254.169.254",
    "0.0.0.0",
    "255.255.255.255",
    "::1",
    "fe80::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "localhost",
  ])
    test(`never goes to ${ip}`, async () => {
      const scrape = scrapeDocument({ sockets: [{ ip, port: 80 }] }, "/", document, never);
      await assert.rejects(scrape, refusedWith(Code.FailedPrecondition));
      assert.deepEqual(asked, []);
    });

  for (const [outcome, code] of [
    [{ kind: "refused", status: 404 }, Code.FailedPrecondition],
    [{ kind: "too-large" }, Code.ResourceExhausted],
    [{ kind: "not-text" }, Code.FailedPrecondition],
    [{ kind: "unreachable", reason: "ECONNREFUSED" }, Code.Unavailable],
  ] as const)
    test(`with the outcome "${outcome.kind}" returns ${Code[code]}`, async () => {
      await assert.rejects(scrapeDocument(target, "/", answering(outcome), never), refusedWith(code));
      asked.length = 0;
    });
});
