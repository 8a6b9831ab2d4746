// A pod with secrets, as a reader finds itself in it: its variables, its token as a file, and krane at the other
// end. The readers are the two that krane brings, and run as processes of their own.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { createInProcessTransport } from "../../../src/dev/in-process-transport.ts";
import type { DesiredDeployments } from "../../../src/kinds/deployment/desired-deployments.ts";
import { createKubeApi } from "../../../src/kube/client.ts";
import { namespaces } from "../../../src/kube/resources.ts";
import { freePort } from "../../support/krane-process.ts";
import { environmentId, SecretSeekers } from "../../support/secret-seekers.ts";
import { serveCluster } from "../../support/served-cluster.ts";
import { sealedBlob, serveSecrets } from "../../support/served-secrets.ts";

const never = new AbortController().signal;
const script = fileURLToPath(new URL("../../../examples/clients/decrypt-env", import.meta.url));

export type ReaderName = "krane exec" | "decrypt-env";
export const readerNames: readonly ReaderName[] = ["krane exec", "decrypt-env"];

/** The command line of a reader that is to run a program, waiting for krane for so many seconds. */
export function readerCommand(name: ReaderName, krane: string, timeoutSeconds = 20) {
  return name === "krane exec"
    ? { argv: [krane, "exec", "--timeout", `${timeoutSeconds}s`, "--"], env: {} }
    : { argv: ["sh", script], env: { DECRYPT_ENV_TIMEOUT: String(timeoutSeconds) } };
}

/** A program that says as JSON what it was started with. */
export const tellEnvironment = [process.execPath, "-e", "console.log(JSON.stringify(process.env))"];

export async function createSecretsPod(t: TestContext, variables: Readonly<Record<string, string>>) {
  const cluster = await serveCluster();
  t.after(() => cluster.stop());
  await cluster.api.create(namespaces, { metadata: { name: "acme" } }, {}, never);
  const seekers = new SecretSeekers(cluster.api, "acme");
  const pod = await seekers.deploy("web");
  const folder = await mkdtemp(join(tmpdir(), "krane-exec-"));
  t.after(() => rm(folder, { recursive: true }));
  const tokenPath = join(folder, "token");
  // Replaced whole, as the kubelet does it: a reader never finds an empty file.
  const writeToken = async (token: string) => {
    await writeFile(`${tokenPath}.new`, token);
    await rename(`${tokenPath}.new`, tokenPath);
  };
  await writeToken(await seekers.tokenOf(pod));
  const port = await freePort();
  const api = createKubeApi(createInProcessTransport(cluster.server, { userAgent: "krane" }));
  const env: Readonly<Record<string, string>> = {
    PATH: process.env["PATH"] ?? "",
    UNKEY_ENCRYPTED_ENV: Buffer.from(sealedBlob(environmentId, variables)).toString("base64"),
    UNKEY_PROVIDER_ENDPOINT: `http://127.0.0.1:${port}`,
    UNKEY_TOKEN_PATH: tokenPath,
    UNKEY_DEPLOYMENT_ID: "d_web",
    UNKEY_ENVIRONMENT_ID: environmentId,
  };
  const serve = (desired: DesiredDeployments = seekers.desired) => serveSecrets(t, api, desired, { port });
  return { cluster, seekers, pod, env, folder, writeToken, serve };
}

export function start(t: TestContext, argv: readonly string[], env: Readonly<Record<string, string>>) {
  const [file = "", ...args] = argv;
  const child = spawn(file, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  t.after(() => child.kill("SIGKILL"));
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    stdout += chunk;
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    stderr += chunk;
  });
  const exit = once(child, "close").then(([code, signal]) => ({ code, signal, stdout, stderr }));
  return { child, exit, output: () => ({ stdout, stderr }) };
}
