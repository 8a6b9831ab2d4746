import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { kubeconfigFor } from "../../test/support/served-cluster.ts";
import { AgentError } from "./agent-error.ts";
import { loadClusterAccess } from "./cluster-access.ts";

const folder = "/var/run/secrets/kubernetes.io/serviceaccount";
const podFiles = { [`${folder}/ca.crt`]: "ca", [`${folder}/token`]: "t", [`${folder}/namespace`]: "krane\n" };
const podEnv = { KUBERNETES_SERVICE_HOST: "10.0.0.1", KUBERNETES_SERVICE_PORT: "443" };

function load(
  kubeconfig: string | undefined,
  env: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>>,
  namespace?: string,
) {
  const deps = {
    clock: new FakeClock(),
    env,
    async readTextFile(path: string) {
      const text = files[path];
      if (text !== undefined) return text;
      // Fails as node:fs does.
      throw new Error("no such file", { cause: Object.assign(new Error("ENOENT"), { code: "ENOENT" }) });
    },
    runCommand: () => assert.fail("no command is needed"),
  };
  const kubernetes = {
    ...(kubeconfig !== undefined && { kubeconfig }),
    ...(namespace !== undefined && { namespace }),
  };
  return loadClusterAccess({ kubernetes }, deps, new AbortController().signal);
}

const refusal = (message: RegExp) => (error: unknown) =>
  error instanceof AgentError && error.code === "cluster_unknown" && message.test(error.message);

describe("cluster access", () => {
  test("the kubeconfig of the configuration wins, then the pod's own, then KUBECONFIG", async () => {
    const files = { ...podFiles, a: kubeconfigFor("https://a"), b: kubeconfigFor("https://b") };
    const env = { ...podEnv, KUBECONFIG: "b" };
    assert.equal((await load("a", env, files)).endpoint.server, "https://a");
    assert.equal((await load(undefined, env, files)).endpoint.server, "https://10.0.0.1:443");
    assert.equal((await load(undefined, { KUBECONFIG: "b" }, files)).endpoint.server, "https://b");
  });

  test("a missing file in the KUBECONFIG list is skipped", async () => {
    const files = { b: kubeconfigFor("https://b") };
    assert.equal((await load(undefined, { KUBECONFIG: "a:b" }, files)).endpoint.server, "https://b");
  });

  test("krane's own namespace is known when krane manages the cluster that it runs in", async () => {
    const files = { ...podFiles, a: kubeconfigFor("https://a") };
    assert.equal((await load(undefined, podEnv, files)).ownNamespace, "krane");
    assert.equal((await load("a", podEnv, files)).ownNamespace, undefined);
  });

  test("krane keeps its objects in the configured namespace, else in that of its pod, else in krane", async () => {
    const files = { ...podFiles, [`${folder}/namespace`]: "platform\n", a: kubeconfigFor("https://a") };
    const inPod = async (namespace?: string) =>
      (await load(undefined, podEnv, files, namespace)).stateNamespace;
    const outside = async (namespace?: string) => (await load("a", podEnv, files, namespace)).stateNamespace;
    assert.deepEqual([await inPod(), await outside()], ["platform", "krane"]);
    assert.deepEqual([await inPod("mine"), await outside("mine")], ["mine", "mine"]);
  });

  test("without any credentials the error names every place that was searched, and the remedy", async () => {
    await assert.rejects(load(undefined, {}, {}), refusal(/kubernetes\.kubeconfig.*KUBECONFIG.*pod.*; set /));
  });

  test("the error for unusable credentials names their source and the reason", async () => {
    await assert.rejects(load("a", {}, {}), refusal(/^kubernetes\.kubeconfig: cannot read a: no such file$/));
    await assert.rejects(load(undefined, { KUBECONFIG: "b" }, {}), refusal(/^KUBECONFIG: .*\bb\b/));
    await assert.rejects(
      load(undefined, podEnv, {}),
      refusal(/^the credentials of krane's pod: cannot read .*ca/),
    );
    await assert.rejects(load("a", {}, { a: "{" }), refusal(/^kubernetes\.kubeconfig: .*a/));
  });
});
