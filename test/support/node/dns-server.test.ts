import assert from "node:assert/strict";
import { test } from "node:test";
import { answerTo, parseQuestion, type ServiceLookup } from "./dns-server.ts";

const a = 1;
const aaaa = 28;

function query(name: string, type: number): Buffer {
  const labels = name.split(".").flatMap((label) => [label.length, ...Buffer.from(label)]);
  const header = [0x12, 0x34, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0];
  return Buffer.from([...header, ...labels, 0, 0, type, 0, 1]);
}

const services: ServiceLookup = async (namespace, name, pod) =>
  namespace === "krane" && name === "server"
    ? pod === undefined
      ? ["10.96.0.9"]
      : ["10.244.0.7"]
    : undefined;

async function ask(name: string, type = a) {
  const question = parseQuestion(query(name, type)) ?? assert.fail("not a query");
  const answer = await answerTo(question, services);
  const count = answer.readUInt16BE(6);
  return {
    id: answer.readUInt16BE(0),
    code: answer.readUInt8(3) & 0x0f,
    addresses: Array.from({ length: count }, (_, index) =>
      answer.subarray(answer.length - 16 * index - 4, answer.length - 16 * index).join("."),
    ),
  };
}

test("the name of a Service has its address, in any case of letters", async () => {
  const found = { id: 0x1234, code: 0, addresses: ["10.96.0.9"] };
  assert.deepEqual(await ask("server.krane.svc.cluster.local"), found);
  assert.deepEqual(await ask("SERVER.krane.svc.cluster.local"), found);
});

test("a pod of a headless Service has a name of its own", async () => {
  assert.deepEqual((await ask("pod-0.server.krane.svc.cluster.local")).addresses, ["10.244.0.7"]);
});

test("the name of a pod is its address", async () => {
  assert.deepEqual((await ask("10-244-0-7.web.pod.cluster.local")).addresses, ["10.244.0.7"]);
});

test("a name that has only an IPv4 address exists, with no IPv6 address", async () => {
  assert.deepEqual(await ask("server.krane.svc.cluster.local", aaaa), { id: 0x1234, code: 0, addresses: [] });
});

test("every other name is unknown at once", async () => {
  for (const name of ["other.krane.svc.cluster.local", "example.com", "cluster.local"]) {
    assert.deepEqual(await ask(name), { id: 0x1234, code: 3, addresses: [] });
  }
});

test("what is not a query is not answered", () => {
  const answer = query("example.com", a);
  answer.writeUInt8(0x81, 2);
  const endless = query("example.com", a).subarray(0, 16);
  for (const message of [Buffer.alloc(0), Buffer.alloc(12), answer, endless]) {
    assert.equal(parseQuestion(message), undefined);
  }
});
