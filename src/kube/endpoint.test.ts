import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { pemOf } from "../config/ca-file.ts";
import type { CommandLine, CredentialDeps } from "./credentials.ts";
import { type EndpointOptions, loadKubeEndpoint } from "./endpoint.ts";
import { KubeApiError } from "./errors.ts";

const signal = new AbortController().signal;
const base64 = (text: string) => Buffer.from(text).toString("base64");
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount";

function world(files: Record<string, string>) {
  const clock = new FakeClock();
  const reads: string[] = [];
  const commands: CommandLine[] = [];
  let stdout = "";
  const deps: CredentialDeps = {
    clock,
    async readTextFile(path) {
      reads.push(path);
      const text = files[path];
      if (text === undefined) throw Object.assign(new Error("no such file"), { code: "ENOENT" });
      return text;
    },
    async runCommand(command, given) {
      commands.push(command);
      await clock.settle();
      given.throwIfAborted();
      return { exitCode: 0, stdout };
    },
  };
  return {
    clock,
    files,
    reads,
    commands,
    prints: (text: string) => {
      stdout = text;
    },
    load: (options: Partial<EndpointOptions>) => loadKubeEndpoint({ env: {}, ...options }, deps, signal),
  };
}

function config(cluster: string, user: string): string {
  return `
apiVersion: v1
kind: Config
current-context: main
contexts:
- name: main
  context: {cluster: c, user: u, namespace: ignored}
clusters:
- name: c
  cluster:
${cluster}
users:
- name: u
  user:
${user}
`;
}

async function refusal(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => assert.fail("it did not fail"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof KubeApiError && error.code === "credentials", String(error));
  return error.message;
}

test("a configured kubeconfig overrides the pod's credentials, and those override KUBECONFIG", async () => {
  const { load } = world({
    "/named": config("    server: https://named", "    token: t"),
    "/env": config("    server: https://env", "    token: t"),
    [`${serviceAccount}/ca.crt`]: "ca",
    [`${serviceAccount}/token`]: "token",
  });
  const pod = { KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "443" };
  const env = { ...pod, KUBECONFIG: "/env" };
  assert.equal((await load({ kubeconfig: "/named", env })).server, "https://named");
  const inCluster = await load({ env });
  assert.deepEqual([inCluster.server, inCluster.ca && pemOf(inCluster.ca)], ["https://[fd00::1]:443", "ca"]);
  assert.deepEqual(await inCluster.credentials.current(signal), { authorization: "Bearer token" });
  assert.equal((await load({ env: { KUBECONFIG: "/env" } })).server, "https://env");
  assert.match(await refusal(load({})), /no kubeconfig/);
});

test("certificates, keys and CAs come as data or as files relative to the kubeconfig", async () => {
  const { load } = world({
    "/etc/kube/config": config(
      "    server: https://s\n    certificate-authority: pki/ca.pem\n    tls-server-name: kubernetes",
      `    client-certificate: /abs/cert.pem\n    client-key-data: ${base64("key")}\n    tokenFile: tok`,
    ),
    "/etc/kube/pki/ca.pem": "ca",
    "/abs/cert.pem": "cert",
    "/etc/kube/tok": " secret \n",
  });
  const endpoint = await load({ kubeconfig: "/etc/kube/config" });
  assert.deepEqual(
    [endpoint.ca && pemOf(endpoint.ca), endpoint.serverName, endpoint.insecureSkipTlsVerify],
    ["ca", "kubernetes", undefined],
  );
  assert.deepEqual(await endpoint.credentials.current(signal), {
    authorization: "Bearer secret",
    certificate: { cert: "cert", key: "key" },
  });
});

test("the server's certificate is not verified only if the kubeconfig says so", async () => {
  const { load } = world({
    "/a": config("    server: https://s\n    insecure-skip-tls-verify: true", "    token: t"),
    "/b": config('    server: https://s\n    insecure-skip-tls-verify: "yes"', "    token: t"),
  });
  assert.equal((await load({ kubeconfig: "/a" })).insecureSkipTlsVerify, true);
  assert.equal((await load({ kubeconfig: "/b" })).insecureSkipTlsVerify, undefined);
});

test("the first file that defines something wins, and missing files are skipped", async () => {
  const { load } = world({
    "/one": "contexts: [{name: main, context: {cluster: c, user: u}}]\ncurrent-context: main",
    "/two": config("    server: https://two", "    token: two").replace(
      "current-context: main",
      "current-context: x",
    ),
  });
  const endpoint = await load({ env: { KUBECONFIG: "/missing:/one::/two" } });
  assert.equal(endpoint.server, "https://two");
  assert.match(await refusal(load({ env: { KUBECONFIG: "/missing:/gone" } })), /\/missing, \/gone/);
  assert.match(await refusal(load({ env: { KUBECONFIG: "/two" } })), /no context "x"/);
  assert.equal((await load({ env: { KUBECONFIG: "/two" }, context: "main" })).server, "https://two");
});

test("unsupported settings that change the identity or the route are errors, not ignored", async () => {
  for (const user of ["as: admin", "auth-provider: {name: gcp}", "username: root"]) {
    const { load } = world({ "/a": config("    server: https://s", `    ${user}`) });
    assert.match(await refusal(load({ kubeconfig: "/a" })), /is not supported/);
  }
  const { load } = world({ "/a": config("    server: https://s\n    proxy-url: http://p", "    token: t") });
  assert.match(await refusal(load({ kubeconfig: "/a" })), /"proxy-url" is not supported/);
});

test("an error about invalid YAML does not quote the kubeconfig", async () => {
  const { load } = world({ "/a": "users:\n- name: u\n  user: {token: hunter2\n  x: [" });
  const message = await refusal(load({ kubeconfig: "/a" }));
  assert.match(message, /\/a is not YAML: \w+ in line \d/);
  assert.doesNotMatch(message, /hunter2/);
});

test("a client key without its certificate is an error", async () => {
  const { load } = world({ "/a": config("    server: https://s", `    client-key-data: ${base64("key")}`) });
  const endpoint = await load({ kubeconfig: "/a" });
  assert.match(
    await refusal(endpoint.credentials.current(signal)),
    /a client certificate or a client key, but not both/,
  );
});

test("a token file is read again after a minute, and the old token stays in use while reading fails", async () => {
  const { load, files, reads, clock } = world({
    "/a": config("    server: https://s", "    tokenFile: /t"),
    "/t": "one",
  });
  const { credentials } = await load({ kubeconfig: "/a" });
  const token = async () => (await credentials.current(signal)).authorization;
  assert.equal(await token(), "Bearer one");
  files["/t"] = "two";
  await clock.advance(59_000);
  assert.equal(await token(), "Bearer one");
  await clock.advance(1_000);
  assert.equal(await token(), "Bearer two");
  delete files["/t"];
  await clock.advance(60_000);
  assert.equal(await token(), "Bearer two");
  const before = reads.length;
  await token();
  assert.equal(reads.length, before, "a file that cannot be read is not tried for each request");
});

const execUser = `    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      command: bin/login
      args: [--cluster, x]
      env: [{name: A, value: b}]
      provideClusterInfo: true`;

function printed(token: string, expirationTimestamp?: string): string {
  const status = { token, ...(expirationTimestamp && { expirationTimestamp }) };
  return JSON.stringify({
    apiVersion: "client.authentication.k8s.io/v1beta1",
    kind: "ExecCredential",
    status,
  });
}

test("an exec plugin gets its input, and runs again shortly before its credential expires", async () => {
  const { load, prints, commands, clock } = world({
    "/etc/config": config("    server: https://s", execUser),
  });
  const { credentials } = await load({ kubeconfig: "/etc/config" });
  prints(printed("one", "2026-01-01T00:05:00Z"));
  assert.equal(commands.length, 0, "nothing runs before it is needed");
  const [first] = await Promise.all([credentials.current(signal), credentials.current(signal)]);
  assert.deepEqual(first, { authorization: "Bearer one" });
  assert.equal(commands.length, 1);
  assert.equal(commands[0]?.command, "/etc/bin/login");
  assert.deepEqual(commands[0]?.args, ["--cluster", "x"]);
  assert.equal(commands[0]?.env["A"], "b");
  assert.deepEqual(JSON.parse(commands[0]?.env["KUBERNETES_EXEC_INFO"] ?? ""), {
    apiVersion: "client.authentication.k8s.io/v1beta1",
    kind: "ExecCredential",
    spec: { interactive: false, cluster: { server: "https://s" } },
  });
  prints(printed("two"));
  await clock.advance(4 * 60_000);
  assert.deepEqual(await credentials.current(signal), { authorization: "Bearer one" });
  await clock.advance(51_000);
  assert.deepEqual(await credentials.current(signal), { authorization: "Bearer two" });
  await clock.advance(24 * 3_600_000);
  await credentials.current(signal);
  assert.equal(commands.length, 2, "without an expiry it holds until it is refused");
});

test("a rejected credential is renewed once for all requests, and at most once a second", async () => {
  const { load, prints, commands, clock } = world({ "/a": config("    server: https://s", execUser) });
  const { credentials } = await load({ kubeconfig: "/a" });
  prints(printed("one"));
  const refused = await credentials.current(signal);
  assert.equal(await credentials.renew(refused, signal), refused);
  await clock.advance(1_000);
  prints(printed("two"));
  const renewed = await Promise.all([1, 2, 3].map(() => credentials.renew(refused, signal)));
  assert.deepEqual(new Set(renewed.map((one) => one.authorization)), new Set(["Bearer two"]));
  assert.equal(commands.length, 2);
  await clock.advance(1_000);
  prints(printed("two"));
  const last = renewed[0] ?? assert.fail();
  assert.equal(await credentials.renew(last, signal), last, "the same token again must not cause a retry");
});

test("an exec plugin with an unknown version, or that is always interactive, is an error", async () => {
  const alpha = execUser.replace("v1beta1", "v1alpha1");
  const asking = `${execUser}\n      interactiveMode: Always`;
  for (const user of [alpha, asking]) {
    const { load } = world({ "/a": config("    server: https://s", user) });
    await refusal(load({ kubeconfig: "/a" }));
  }
});

test("a caller that aborts does not fail the others that wait for the same credential", async () => {
  const { load, prints } = world({ "/a": config("    server: https://s", execUser) });
  const { credentials } = await load({ kubeconfig: "/a" });
  prints(printed("one"));
  const stop = new AbortController();
  stop.abort();
  const given = credentials.current(stop.signal);
  const other = credentials.current(signal);
  await given.catch(() => undefined);
  assert.deepEqual(await other, { authorization: "Bearer one" });
});
