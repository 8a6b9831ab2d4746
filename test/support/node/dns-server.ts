// A DNS server for the pods of one node: the names of Services and pods, and no others. It has no upstream, so that every
// other name fails at once instead of after a timeout.

import { createSocket } from "node:dgram";
import { once } from "node:events";

/** Returns the IPv4 addresses of a Service; of a headless one, those of its pods. Undefined: unknown. */
export type ServiceLookup = (
  namespace: string,
  name: string,
  pod: string | undefined,
) => Promise<readonly string[] | undefined>;

export interface DnsServer {
  close(): void;
}

export interface DnsQuestion {
  readonly id: number;
  readonly name: string;
  readonly type: number;
  /** The question section as it came, which an answer repeats. */
  readonly section: Buffer;
}

const headerLength = 12;
const typeA = 1;
const anyClass = 1;
const ttlSeconds = 2;
const noError = 0;
const serverFailure = 2;
const unknownName = 3;

export async function startDnsServer(address: string, lookup: ServiceLookup): Promise<DnsServer> {
  const socket = createSocket("udp4");
  socket.on("message", async (message, sender) => {
    const question = parseQuestion(message);
    if (question === undefined) return;
    const answer = await answerTo(question, lookup).catch(() => encodeAnswer(question, serverFailure, []));
    socket.send(answer, sender.port, sender.address, () => undefined);
  });
  socket.bind(53, address);
  await once(socket, "listening");
  return { close: () => socket.close() };
}

export async function answerTo(question: DnsQuestion, lookup: ServiceLookup): Promise<Buffer> {
  // A pod's name contains its address, and is answered as CoreDNS does by default: whether or not that pod exists.
  const pod4 = /^(\d+)-(\d+)-(\d+)-(\d+)\.[^.]+\.pod\.cluster\.local$/.exec(question.name.toLowerCase());
  if (pod4 !== null)
    return encodeAnswer(question, noError, question.type === typeA ? [pod4.slice(1).join(".")] : []);
  const found = /^(?:([^.]+)\.)?([^.]+)\.([^.]+)\.svc\.cluster\.local$/.exec(question.name.toLowerCase());
  const [, pod, name = "", namespace = ""] = found ?? [];
  const addresses = found === null ? undefined : await lookup(namespace, name, pod);
  if (addresses === undefined) return encodeAnswer(question, unknownName, []);
  // An AAAA query for a name that exists gets an empty answer: "unknown" would make resolvers drop the A records too.
  return encodeAnswer(question, noError, question.type === typeA ? addresses : []);
}

/** Undefined if it is not a query with one question. */
export function parseQuestion(message: Buffer): DnsQuestion | undefined {
  if (message.length < headerLength || (message.readUInt8(2) & 0x80) !== 0 || message.readUInt16BE(4) !== 1) {
    return undefined;
  }
  const labels: string[] = [];
  let at = headerLength;
  for (let length = message[at]; length !== 0; length = message[at]) {
    if (length === undefined || length > 63 || at + 1 + length > message.length) return undefined;
    labels.push(message.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  const end = at + 5;
  if (end > message.length) return undefined;
  const section = message.subarray(headerLength, end);
  return { id: message.readUInt16BE(0), name: labels.join("."), type: message.readUInt16BE(at + 1), section };
}

function encodeAnswer(question: DnsQuestion, code: number, addresses: readonly string[]): Buffer {
  const header = Buffer.alloc(headerLength);
  header.writeUInt16BE(question.id, 0);
  // A response, authoritative, recursion desired and available: some resolvers reject what lacks the last.
  header.writeUInt16BE(0x8580 | code, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(addresses.length, 6);
  return Buffer.concat([header, question.section, ...addresses.map(encodeRecord)]);
}

function encodeRecord(address: string): Buffer {
  const record = Buffer.alloc(16);
  // A pointer to the name in the question.
  record.writeUInt16BE(0xc000 | headerLength, 0);
  record.writeUInt16BE(typeA, 2);
  record.writeUInt16BE(anyClass, 4);
  record.writeUInt32BE(ttlSeconds, 6);
  record.writeUInt16BE(4, 10);
  for (const [index, part] of address.split(".").entries()) record.writeUInt8(Number(part), 12 + index);
  return record;
}
