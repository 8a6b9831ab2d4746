// The pinned grpcurl, where it can be built.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { grpcurl, resolveGoTool } from "../../tools/go-tool.ts";

const binary = await resolveGoTool(
  grpcurl,
  process.env,
  { report: (line) => console.error(line) },
  new AbortController().signal,
);

/** Why tests with it are left out; false where they are not. */
export const grpcurlMissing = binary.kind === "missing" && `grpcurl: ${binary.what}`;

/** Without TLS. What it prints, also when it fails. */
export function runGrpcurl(
  url: string,
  args: readonly string[],
  ...call: readonly string[]
): Promise<string> {
  const path = binary.kind === "ready" ? binary.path : assert.fail("it was not skipped");
  return new Promise((resolve) => {
    const argv = ["-plaintext", ...args, new URL(url).host, ...call];
    execFile(path, argv, { timeout: 60_000 }, (_, stdout, stderr) => resolve((stdout + stderr).trim()));
  });
}
