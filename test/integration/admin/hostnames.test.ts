// Hostnames through the command line: grants, and apps that have one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { main } from "../../../src/cli/main.ts";
import { startAdminServer } from "../../support/admin-server.ts";
import { FakeIo } from "../../support/fake-io.ts";

const region = "local.dev";

const documents = (workspace: string, more: string) => `apiVersion: krane/v1
kind: Environment
id: env_${workspace}
workspace: ${workspace}
project: proj_demo
---
apiVersion: krane/v1
kind: App
id: app_${workspace}
name: web
namespace: ${workspace.replace("_", "-")}
workspace: ${workspace}
project: proj_demo
environment: env_${workspace}
image: registry.example/web:1
${more}`;

async function createWorld(t: { after(work: () => Promise<void>): void }) {
  const server = await startAdminServer({ regions: [region] });
  t.after(() => server.stop());
  const run = async (argv: readonly string[], text = "") => {
    const io = new FakeIo({ "app.yaml": text });
    const env = { KRANE_SERVER: server.url, KRANE_TOKEN: server.tokens.readWrite, KRANE_REGION: region };
    const code = await main(argv, env, io);
    return { code, stdout: io.stdout.text, stderr: io.stderr.text };
  };
  const apply = (text: string, ...more: readonly string[]) => run(["apply", "-f", "app.yaml", ...more], text);
  return { server, run, apply };
}

test("grants are given, listed and taken back", async (t) => {
  const { run } = await createWorld(t);
  const granted = await run(["hostnames", "grant", "*.example.com", "ws_a"]);
  assert.deepEqual(
    [granted.code, granted.stdout],
    [0, "*.example.com is granted to workspace ws_a\n"],
    granted.stderr,
  );
  await run(["hostnames", "grant", "shop.example.com", "ws_b"]);
  const { stdout } = await run(["hostnames", "list"]);
  assert.match(
    stdout,
    /^NAME +WORKSPACE +AGE +BY\n\*\.example\.com +ws_a .*\nshop\.example\.com +ws_b .*\n$/,
  );
  const listed = await run(["hostnames", "list", "--workspace", "ws_b", "-o", "json"]);
  assert.deepEqual(
    JSON.parse(listed.stdout).grants.map(({ name }: { readonly name: string }) => name),
    ["shop.example.com"],
  );
  const taken = await run(["hostnames", "grant", "shop.example.com", "ws_a"]);
  assert.equal(taken.code, 1);
  assert.match(taken.stderr, /shop\.example\.com is granted to workspace ws_b; revoke that first/);
  const wrong = await run(["hostnames", "grant", "Shop.example.com", "ws_a"]);
  assert.match(wrong.stderr, /name must be a full DNS name in lower case/);
  assert.equal((await run(["hostnames", "revoke", "shop.example.com"])).code, 0);
  assert.equal((await run(["hostnames", "revoke", "shop.example.com"])).code, 3);
});

test("a hostname that is not granted, or another app has, is rejected with its field and what to do", async (t) => {
  const { run, apply } = await createWorld(t);
  const hostnames = "hostnames: [www.example.com, shop.example.com]\n";
  await run(["hostnames", "grant", "www.example.com", "ws_a"]);
  for (const more of [[], ["--dry-run"]]) {
    const refused = await apply(documents("ws_a", hostnames), ...more);
    assert.equal(refused.code, 1);
    assert.match(
      refused.stderr,
      /hostnames\[1\] "shop\.example\.com" is not granted to workspace ws_a; grant it with: krane hostnames grant shop\.example\.com ws_a/,
    );
  }
  assert.equal((await run(["get", "app/web"])).code, 3);
  await run(["hostnames", "grant", "shop.example.com", "ws_a"]);
  const applied = await apply(documents("ws_a", hostnames));
  assert.equal(applied.code, 0, applied.stderr);
  assert.match((await run(["get", "routes", "-o", "json"])).stdout, /"shop\.example\.com"/);

  const thief = await apply(documents("ws_b", hostnames));
  assert.match(thief.stderr, /hostnames\[0\] "www\.example\.com" is not granted to workspace ws_b/);
  const revoked = await run(["hostnames", "revoke", "shop.example.com"]);
  assert.match(revoked.stderr, /cannot be revoked: route rt_\w+ of workspace ws_a in region local\.dev uses/);
  const route = `apiVersion: krane/v1
kind: Route
id: rt_other
name: other
namespace: ws-a
workspace: ws_a
project: proj_demo
environment: env_ws_a
deployment: d_1
hostnames: [shop.example.com]
`;
  assert.match((await apply(route)).stderr, /"shop\.example\.com" is already that of route rt_\w+/);
});

test("hostnames imply the gateway, and are rejected for anything else", async (t) => {
  const { run, apply } = await createWorld(t);
  await run(["hostnames", "grant", "*.example.com", "ws_a"]);
  const wrong = await apply(documents("ws_a", "hostnames: [a.example.com]\nexpose: cluster\n"));
  assert.match(wrong.stderr, /hostnames is only for what the gateway exposes/);
  assert.equal((await apply(documents("ws_a", "hostnames: [a.example.com]\n"))).code, 0);
  assert.match((await run(["get", "app/web", "-o", "document"])).stdout, /expose: gateway\nhostnames:/);
});
