// Stores data keys in an S3 bucket, in the layout of the original: `keyring/<keyring>/<name>`, with path-style addresses,
// which work with every S3 server. The library is loaded by the first call, so that a krane without S3 never loads it.
//
// - Creating and replacing are conditional writes (If-None-Match, If-Match). A server that ignores these headers still
//   loses no key, because each key's object has its own name.
// - The library retries. If the first attempt of a create succeeded without a response, the retry returns "exists", which
//   is why callers read what is stored.
import type { S3Client } from "@aws-sdk/client-s3";
import type { SecretSource } from "../../config/secret-source.ts";
import { scrub } from "../../telemetry/scrub.ts";
import { VaultError } from "../vault-error.ts";
import { objectBytesMax, type VaultStorage } from "./storage.ts";

export interface S3StorageOptions {
  /** Endpoint of the server, without the bucket. */
  readonly url: string;
  /** The region that requests are signed for; by default the one that the host names. */
  readonly region?: string;
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly accessKeySecret: SecretSource;
}

const connectTimeoutMs = 3_000;
const requestTimeoutMs = 5_000;
const attemptsMax = 3;
const socketsMax = 16;
const reasonCharsMax = 200;
// Names per page, and at most as many pages as a million keyrings need.
const pageSize = 1_000;
const pagesMax = 10_000;

type S3Library = typeof import("@aws-sdk/client-s3");

export function createS3Storage(options: S3StorageOptions): VaultStorage {
  const { bucket: Bucket } = options;
  const connection = new S3Connection(options);
  return {
    read: (Key, signal) =>
      connection.run(`read ${Key}`, signal, async ({ GetObjectCommand }, client) => {
        // One byte more than the limit, to notice an object that is too large.
        const Range = `bytes=0-${objectBytesMax}`;
        const answer = await unless(
          notThere,
          client.send(new GetObjectCommand({ Bucket, Key, Range }), { abortSignal: signal }),
        );
        if (answer === undefined) return undefined;
        const bytes = await answer.Body?.transformToByteArray();
        if (bytes === undefined || bytes.length > objectBytesMax)
          throw new Error("it is empty or too large for a data key");
        if (answer.ETag === undefined) throw new Error("the server sent no ETag");
        return { bytes, version: answer.ETag };
      }),
    create: (Key, Body, signal) =>
      connection.run(`create ${Key}`, signal, async ({ PutObjectCommand }, client) => {
        const command = new PutObjectCommand({ Bucket, Key, Body, IfNoneMatch: "*" });
        const answer = await unless(inConflict, client.send(command, { abortSignal: signal }));
        return answer === undefined ? "exists" : "created";
      }),
    replace: (Key, Body, version, signal) =>
      connection.run(`replace ${Key}`, signal, async ({ PutObjectCommand }, client) => {
        const command = new PutObjectCommand({ Bucket, Key, Body, IfMatch: version });
        const isChanged = (error: unknown) => inConflict(error) || notThere(error);
        const answer = await unless(isChanged, client.send(command, { abortSignal: signal }));
        return answer === undefined ? "changed" : "replaced";
      }),
    async *list(Prefix, signal) {
      let ContinuationToken: string | undefined;
      for (let page = 0; page < pagesMax; page++) {
        const answer = await connection.run(
          `list ${Prefix}`,
          signal,
          async ({ ListObjectsV2Command }, client) => {
            const command = new ListObjectsV2Command({
              Bucket,
              Prefix,
              MaxKeys: pageSize,
              ContinuationToken,
            });
            return client.send(command, { abortSignal: signal });
          },
        );
        for (const { Key } of answer.Contents ?? []) if (Key !== undefined) yield Key;
        ContinuationToken = answer.NextContinuationToken;
        if (answer.IsTruncated !== true || ContinuationToken === undefined) return;
      }
      throw new VaultError("unavailable", `vault.s3: more than ${pagesMax} pages of objects under ${Prefix}`);
    },
    close: () => connection.close(),
  };
}

interface OpenClient {
  readonly accessKeySecret: string;
  readonly client: S3Client;
}

class S3Connection {
  private readonly options: S3StorageOptions;
  private library: Promise<S3Library> | undefined;
  private open: OpenClient | undefined;
  private closed = false;

  constructor(options: S3StorageOptions) {
    this.options = options;
  }

  async run<T>(
    what: string,
    signal: AbortSignal,
    work: (library: S3Library, client: S3Client) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    try {
      this.library ??= import("@aws-sdk/client-s3");
      const library = await this.library;
      const secret = (await this.options.accessKeySecret.current(signal)).reveal();
      return await work(library, this.clientFor(secret, library));
    } catch (cause) {
      signal.throwIfAborted();
      // A rejected key may have been replaced in its file.
      if (statusOf(cause) === 403) this.options.accessKeySecret.refresh();
      throw new VaultError("unavailable", `vault.s3: cannot ${what}: ${reasonOf(cause)}`);
    }
  }

  async close(): Promise<void> {
    this.closed = true;
    this.open?.client.destroy();
  }

  /** A client keeps the key that it was created with, so a new key needs a new client. */
  private clientFor(accessKeySecret: string, library: S3Library): S3Client {
    if (this.closed) throw new Error("the storage was closed");
    if (this.open?.accessKeySecret === accessKeySecret) return this.open.client;
    this.open?.client.destroy();
    this.open = { accessKeySecret, client: createClient(this.options, accessKeySecret, library) };
    return this.open.client;
  }
}

function createClient(
  { url, region, accessKeyId }: S3StorageOptions,
  secretAccessKey: string,
  library: S3Library,
): S3Client {
  return new library.S3Client({
    endpoint: url,
    region: region ?? regionOf(url),
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
    maxAttempts: attemptsMax,
    requestHandler: {
      connectionTimeout: connectTimeoutMs,
      requestTimeout: requestTimeoutMs,
      throwOnRequestTimeout: true,
      httpAgent: { maxSockets: socketsMax },
      httpsAgent: { maxSockets: socketsMax },
    },
    // Many S3 servers do not know the checksums that newer versions of the library add. The ciphertext's own tag proves
    // more than they do.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
  });
}

// Regional, dual-stack and FIPS hosts, with the older spelling that has a dash before the region.
const amazonHost = /^s3(?:-fips)?[.-](?:dualstack\.)?([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$/;
const amazonVpcHost = /(?:^|\.)vpce-[a-z0-9-]+\.s3\.([a-z0-9-]+)\.vpce\.amazonaws\.com(?:\.cn)?$/;
// These names have no region in them. They belong to the oldest one.
const amazonGlobalHosts = new Set(["s3.amazonaws.com", "s3-external-1.amazonaws.com"]);

/** Amazon requires the real region name; other servers accept "auto". */
export function regionOf(url: string): string {
  const host = new URL(url).hostname.replace(/\.$/, "");
  if (amazonGlobalHosts.has(host)) return "us-east-1";
  return amazonHost.exec(host)?.[1] ?? amazonVpcHost.exec(host)?.[1] ?? "auto";
}

const notThere = (error: unknown) => statusOf(error) === 404 && !isNamed(error, "NoSuchBucket");
/** 412: the condition does not hold; 409: another write is in progress. */
const inConflict = (error: unknown) => statusOf(error) === 412 || statusOf(error) === 409;

async function unless<T>(expected: (error: unknown) => boolean, work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (expected(error)) return undefined;
    throw error;
  }
}

function isNamed(error: unknown, name: string): boolean {
  return error instanceof Error && error.name === name;
}

function statusOf(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null || !("$metadata" in error)) return undefined;
  const { $metadata: metadata } = error;
  if (typeof metadata !== "object" || metadata === null || !("httpStatusCode" in metadata)) return undefined;
  return typeof metadata.httpStatusCode === "number" ? metadata.httpStatusCode : undefined;
}

/** What to do about failures that a wrong setting causes. */
function remedyOf(error: unknown): string | undefined {
  if (isNamed(error, "NoSuchBucket"))
    return "the bucket does not exist; create it, or correct vault.s3.bucket";
  if (isNamed(error, "AuthorizationHeaderMalformed"))
    return "the server rejected the region of the signature; set vault.s3.region";
  if (statusOf(error) === 403)
    return "access denied; check vault.s3.access_key_id, access_key_secret and the bucket's policy";
  if (statusOf(error) === 501) return "the server does not support conditional writes, which the vault needs";
  return undefined;
}

/** The error itself is not kept as a cause, because it contains the request with its signature. */
function reasonOf(error: unknown): string {
  const remedy = remedyOf(error);
  if (remedy !== undefined) return remedy;
  const { name, message } = error instanceof Error ? error : { name: "", message: String(error) };
  const known = name === "" || name === "Error" || message.includes(name) ? message : `${name}: ${message}`;
  return scrub(known === "" ? "no reason given" : known, reasonCharsMax);
}
