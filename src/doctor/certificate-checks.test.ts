import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { readProjectFile } from "../../test/support/project-files.ts";
import { judgeCertificates, judgeValidity } from "./certificate-checks.ts";

const pem = readProjectFile("testdata/tls/first.cert.pem");
const { validFrom, validTo } = new X509Certificate(pem);
const [beginMs, endMs] = [Date.parse(validFrom), Date.parse(validTo)];
const dayMs = 86_400_000;

function stateAt(nowMs: number, text = pem): string {
  const { state, remedy } = judgeCertificates("tls.cert_file", text, nowMs);
  assert.equal(remedy === "", state === "ok");
  return state;
}

test("a certificate is ok until two weeks before it expires", () => {
  assert.equal(stateAt(beginMs), "ok");
  assert.equal(stateAt(endMs - 15 * dayMs), "ok");
  assert.equal(stateAt(endMs - 13 * dayMs), "warning");
  assert.equal(stateAt(endMs), "problem");
  assert.equal(stateAt(beginMs - 1_000), "problem");
});

test("the remedy does not ask for a restart", () => {
  const { remedy } = judgeCertificates("control.ca_file", pem, endMs);
  assert.equal(remedy, "renew it; krane reloads the file without a restart");
});

test("an invalid certificate is a problem, even after a valid one", () => {
  const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  assert.equal(stateAt(beginMs, ""), "problem");
  assert.equal(stateAt(beginMs, broken), "problem");
  assert.equal(stateAt(beginMs, `${pem}${broken}`), "problem");
});

test("a chain is judged by the certificate that expires first", () => {
  const long = { validFrom, validTo: "Oct 22 11:07:25 2226 GMT" };
  const short = { validFrom, validTo };
  for (const chain of [
    [long, short],
    [short, long],
  ])
    assert.equal(judgeValidity("tls.cert_file", chain, endMs - 13 * dayMs).state, "warning");
});
