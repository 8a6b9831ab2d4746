// A real S3 server on the loopback interface, in a folder that goes with it.
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp } from "node:fs/promises";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openKennel } from "./cluster/leash.ts";
import { whileAlive } from "./cluster/vigil.ts";
import { eventually } from "./eventually.ts";
import { freePort } from "./krane-process.ts";

export interface S3Server {
  readonly url: string;
  readonly accessKeyId: string;
  readonly accessKeySecret: string;
  /** Makes an empty bucket and returns its name. */
  createBucket(): Promise<string>;
  stop(): Promise<void>;
}

export async function startS3Server(binary: string): Promise<S3Server> {
  const dir = await mkdtemp(join(tmpdir(), "krane-s3-"));
  const kennel = openKennel(dir);
  try {
    const port = await freePort();
    const buckets = join(dir, "buckets");
    await mkdir(buckets);
    const accessKeyId = "tester";
    const accessKeySecret = randomBytes(16).toString("hex");
    const server = kennel.start({
      name: "versitygw",
      file: binary,
      args: ["--port", `127.0.0.1:${port}`, "--region", "auto", "--quiet", "--keep-alive", "posix", buckets],
      cwd: dir,
      env: {
        PATH: process.env["PATH"],
        HOME: dir,
        ROOT_ACCESS_KEY_ID: accessKeyId,
        ROOT_SECRET_ACCESS_KEY: accessKeySecret,
      },
      logPath: join(dir, "versitygw.log"),
    });
    await whileAlive(
      [server],
      (signal) => eventually("the S3 server listens", () => connect(port), { signal }),
      new AbortController().signal,
    );
    return {
      url: `http://127.0.0.1:${port}`,
      accessKeyId,
      accessKeySecret,
      async createBucket() {
        const name = `vault-${randomBytes(5).toString("hex")}`;
        await mkdir(join(buckets, name));
        return name;
      },
      stop: () => kennel.close(),
    };
  } catch (error) {
    await kennel.close();
    throw error;
  }
}

function connect(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ host: "127.0.0.1", port }, () => {
      socket.destroy();
      resolve();
    });
    socket.once("error", reject);
  });
}
