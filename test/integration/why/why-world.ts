// A whole region for `krane why`: a control plane with its admin API, an embedded cluster, an agent between them when
// a test starts one, and the command line as a person would type it.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { main } from "../../../src/cli/main.ts";
import type { Cause, Explanation } from "../../../src/why/explanation.ts";
import { type AdminServer, type AdminServerOptions, startAdminServer } from "../../support/admin-server.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeIo } from "../../support/fake-io.ts";
import { freePort } from "../../support/krane-process.ts";
import { type ServedCluster, serveCluster } from "../../support/served-cluster.ts";
import { parse, type RunningAgent, startedAgent } from "../agent/agent-world.ts";

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface WhyRegion extends AdminServer {
  /** With TOML that comes after what every agent has. */
  startAgent(more?: string): Promise<RunningAgent>;
  krane(...argv: readonly string[]): Promise<CommandResult>;
  /** In a folder with these files. */
  kraneWith(files: Readonly<Record<string, string>>, ...argv: readonly string[]): Promise<CommandResult>;
  /** Asks until the answer names the cause. */
  becauseOf(cause: Cause, ...named: readonly string[]): Promise<Explanation>;
}

export interface WhyWorld extends WhyRegion {
  readonly cluster: ServedCluster;
}

export async function createWhyWorld(
  t: TestContext,
  options: { readonly withoutCilium?: boolean } & AdminServerOptions = {},
): Promise<WhyWorld> {
  const cluster = await serveCluster(options);
  t.after(() => cluster.stop());
  return { ...(await createWhyRegion(t, cluster.kubeconfig, options)), cluster };
}

/** Around a cluster that there is already. */
export async function createWhyRegion(
  t: TestContext,
  kubeconfig: string,
  options: AdminServerOptions = {},
): Promise<WhyRegion> {
  const server = await startAdminServer(options);
  t.after(() => server.stop());
  const { url, region, tokens } = server;
  const env = { KRANE_SERVER: url, KRANE_TOKEN: tokens.readWrite, KRANE_REGION: region };
  const kraneWith = async (files: Readonly<Record<string, string>>, ...argv: readonly string[]) => {
    const io = new FakeIo(files);
    const code = await main(argv, env, io);
    return { code, stdout: io.stdout.text, stderr: io.stderr.text };
  };
  const krane = (...argv: readonly string[]) => kraneWith({}, ...argv);
  return {
    ...server,
    krane,
    kraneWith,
    async startAgent(more = "") {
      const config = parse(`region = "${region}"
rpc_port = ${await freePort()}
[control]
url = "${url}"
token = "${tokens.agent}"
[kubernetes]
kubeconfig = "kubeconfig"
${more}`);
      return startedAgent(t, config, { kubeconfig });
    },
    becauseOf: (cause, ...named) =>
      eventually(`${named.join(" ")}: ${cause}`, async () => {
        const { stdout, stderr } = await krane("why", ...named, "-o", "json");
        const answer: Explanation = JSON.parse(stdout || assert.fail(stderr));
        assert.equal(answer.cause, cause, stdout);
        return answer;
      }),
  };
}
