import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { applyDeployment, deploymentSpec, utf8 } from "../../../test/support/deployment-messages.ts";
import { DeleteDeploymentSchema } from "../../gen/ctrl/v1/deployment_pb.ts";
import type { FieldProblem, ParsedMessage } from "../../model/field-problem.ts";
import { blobBytesMax } from "./secrets-blob.ts";
import { defaultPort, parseApplyDeployment, parseDeleteDeployment } from "./spec.ts";

const rules = { ownNamespace: "platform", registries: [] };

function problemsOf(parsed: ParsedMessage<unknown>): readonly FieldProblem[] {
  return parsed.kind === "invalid" ? parsed.problems : [];
}

function pathsOf(overrides: Parameters<typeof applyDeployment>[0]): readonly string[] {
  return problemsOf(parseApplyDeployment(applyDeployment(overrides), rules)).map(({ path }) => path);
}

const healthcheck = (value: unknown) => ({ healthcheck: utf8(JSON.stringify(value)) });
const secrets = (value: unknown) => ({ encryptedEnvironmentVariables: utf8(JSON.stringify(value)) });

const variables = (count: number, value: string) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`V_${index}`, value]));

const invalid: readonly (readonly [string, Parameters<typeof applyDeployment>[0], string])[] = [
  ["no workspace", { workspaceId: "" }, "workspace_id"],
  ["a workspace that no label can hold", { workspaceId: "ws 1" }, "workspace_id"],
  ["no project", { projectId: "" }, "project_id"],
  ["a project of 64 characters", { projectId: "p".repeat(64) }, "project_id"],
  ["no environment", { environmentId: "" }, "environment_id"],
  ["an environment that ends in a dash", { environmentId: "env-" }, "environment_id"],
  ["no id", { deploymentId: "" }, "deployment_id"],
  ["an id with a comma", { deploymentId: "d_1,d_2" }, "deployment_id"],
  ["a build that no label can hold", { buildId: "/1" }, "build_id"],
  ["no namespace", { k8sNamespace: "" }, "k8s_namespace"],
  ["a namespace with a slash", { k8sNamespace: "a/b" }, "k8s_namespace"],
  ["a namespace of 64 characters", { k8sNamespace: "n".repeat(64) }, "k8s_namespace"],
  ["namespace default", { k8sNamespace: "default" }, "k8s_namespace"],
  ["namespace kube-system", { k8sNamespace: "kube-system" }, "k8s_namespace"],
  ["namespace sentinel", { k8sNamespace: "sentinel" }, "k8s_namespace"],
  ["krane's own namespace", { k8sNamespace: "platform" }, "k8s_namespace"],
  ["no name", { k8sName: "" }, "k8s_name"],
  ["a name that starts with a digit", { k8sName: "1web" }, "k8s_name"],
  ["a name that climbs", { k8sName: "../web" }, "k8s_name"],
  ["a name of 64 characters", { k8sName: "w".repeat(64) }, "k8s_name"],
  ["no image", { image: "" }, "image"],
  ["an image with a space", { image: "registry.example/web 1" }, "image"],
  ["fewer than no replicas", { replicas: -1 }, "replicas"],
  ["too many replicas", { replicas: 2_147_483_647 }, "replicas"],
  ["replicas that are no number", { replicas: Number.NaN }, "replicas"],
  ["no CPU", { cpuMillicores: 0n }, "cpu_millicores"],
  ["negative CPU", { cpuMillicores: -1n }, "cpu_millicores"],
  ["more CPU than a number can tell", { cpuMillicores: 2n ** 63n - 1n }, "cpu_millicores"],
  ["no memory", { memoryMib: 0n }, "memory_mib"],
  ["negative memory", { memoryMib: -(2n ** 63n) }, "memory_mib"],
  ["too much memory", { memoryMib: 2n ** 40n }, "memory_mib"],
  ["a negative port", { port: -1 }, "port"],
  ["a port above 65535", { port: 65_536 }, "port"],
  ["an unknown signal", { shutdownSignal: "SIGHUP" }, "shutdown_signal"],
  ["a signal in lower case", { shutdownSignal: "sigint" }, "shutdown_signal"],
  ["a signal that is a script", { shutdownSignal: "KILL 1; sh" }, "shutdown_signal"],
  ["a pull secret that is not for registries", { pullSecret: "database" }, "pull_secret"],
  ["the agent's own pull secret", { pullSecret: "krane-registry" }, "pull_secret"],
  ["a pull secret without a name of its own", { pullSecret: "krane-registry-" }, "pull_secret"],
  ["a pull secret that climbs", { pullSecret: "krane-registry-/../x" }, "pull_secret"],
  ["a pull secret in upper case", { pullSecret: "krane-registry-Acme" }, "pull_secret"],
  ["a pull secret of 79 characters", { pullSecret: `krane-registry-${"a".repeat(64)}` }, "pull_secret"],
  ["a program without a name", { command: ["", "x"] }, "command[0]"],
  ["an argument with a NUL", { command: ["run", "a", "b\0c"] }, "command[2]"],
  ["an argument that is half a character", { command: ["run", "\ud800"] }, "command[1]"],
  ["too many arguments", { command: Array.from({ length: 1_025 }, () => "a") }, "command"],
  ["too long a command", { command: ["run", "a".repeat(128 * 1024)] }, "command"],
  ["a healthcheck that is not JSON", { healthcheck: utf8("{method: GET}") }, "healthcheck"],
  ["a healthcheck that is not UTF-8", { healthcheck: Uint8Array.of(0x22, 0xff, 0x22) }, "healthcheck"],
  ["a healthcheck that is a list", healthcheck([]), "healthcheck"],
  ["a healthcheck that is text", healthcheck("/"), "healthcheck"],
  ["a healthcheck of 9 KiB", healthcheck({ note: "x".repeat(9 * 1024) }), "healthcheck"],
  ["an unknown probe method", healthcheck({ method: "HEAD" }), "healthcheck.method"],
  ["a probe method in lower case", healthcheck({ method: "post" }), "healthcheck.method"],
  ["a probe path without its slash", healthcheck({ path: "health" }), "healthcheck.path"],
  ["a probe path that names a host", healthcheck({ path: "@evil.example/" }), "healthcheck.path"],
  ["a probe path with a space", healthcheck({ path: "/a b" }), "healthcheck.path"],
  ["a probe path with a line break", healthcheck({ path: "/a\r\nX: y" }), "healthcheck.path"],
  ["a probe path outside ASCII", healthcheck({ path: "/\u00fc" }), "healthcheck.path"],
  ["a probe path of 3 KiB", healthcheck({ path: `/${"a".repeat(3 * 1024)}` }), "healthcheck.path"],
  ["a probe path that is a number", healthcheck({ path: 1 }), "healthcheck.path"],
  ["a negative interval", healthcheck({ intervalSeconds: -1 }), "healthcheck.intervalSeconds"],
  ["half a second of time-out", healthcheck({ timeoutSeconds: 0.5 }), "healthcheck.timeoutSeconds"],
  ["a threshold in text", healthcheck({ failureThreshold: "3" }), "healthcheck.failureThreshold"],
  ["a delay of two days", healthcheck({ initialDelaySeconds: 172_800 }), "healthcheck.initialDelaySeconds"],
  ["a plain variable of krane's own", { env: { PORT: "1" } }, 'env["PORT"]'],
  ["a plain variable with a space", { env: { "A B": "1" } }, 'env["A B"]'],
  ["a plain variable that leads out of a folder", { env: { "../x": "1" } }, 'env["../x"]'],
  ["a plain variable with a NUL", { env: { A: "a\0b" } }, 'env["A"]'],
  ["too many plain variables", { env: variables(513, "") }, "env"],
  ["too long plain variables", { env: variables(2, "x".repeat(32 * 1024)) }, "env"],
  [
    "a blob that is not JSON",
    { encryptedEnvironmentVariables: utf8("secret") },
    "encrypted_environment_variables",
  ],
  ["a blob with an unknown field", secrets({ other: 1 }), "encrypted_environment_variables"],
  ["a blob with a number", secrets({ secrets: { A: 1 } }), "encrypted_environment_variables"],
  [
    "a blob that does not fit into a variable",
    { encryptedEnvironmentVariables: utf8(JSON.stringify({ secrets: { A: "x".repeat(blobBytesMax) } })) },
    "encrypted_environment_variables",
  ],
  [
    "a variable with a space",
    secrets({ secrets: { "A B": "x" } }),
    'encrypted_environment_variables.secrets["A B"]',
  ],
  [
    "a variable with an equals sign",
    secrets({ secrets: { "A=B": "x" } }),
    'encrypted_environment_variables.secrets["A=B"]',
  ],
  [
    "a variable without a name",
    secrets({ secrets: { "": "x" } }),
    'encrypted_environment_variables.secrets[""]',
  ],
  [
    "a tenant's own PORT",
    secrets({ secrets: { PORT: "x" } }),
    'encrypted_environment_variables.secrets["PORT"]',
  ],
  [
    "a tenant's own deployment id",
    secrets({ secrets: { UNKEY_DEPLOYMENT_ID: "x" } }),
    'encrypted_environment_variables.secrets["UNKEY_DEPLOYMENT_ID"]',
  ],
];

for (const [what, overrides, path] of invalid) {
  test(`${what} is refused at ${path}`, () => {
    assert.deepEqual(pathsOf(overrides), [path]);
  });
}

test("everything that is wrong is said at once", () => {
  const paths = pathsOf({
    workspaceId: "",
    image: "",
    replicas: -1,
    port: 70_000,
    command: ["", "\0"],
    ...healthcheck({ method: "X", path: "x", timeoutSeconds: -1 }),
    ...secrets({ secrets: { PORT: "x", "A B": "x" } }),
  });
  assert.deepEqual(new Set(paths).size, 11, paths.join(" "));
});

test("a problem names what it saw, and never a byte of the blob", () => {
  const messages = problemsOf(
    parseApplyDeployment(
      applyDeployment({ k8sName: "Web\n", encryptedEnvironmentVariables: utf8("canary-in-the-blob") }),
      rules,
    ),
  ).map(({ message }) => message);
  assert.match(messages.join(), /"Web\\n"/);
  assert.doesNotMatch(messages.join(), /canary/);
});

test("the default port stands for port 0", () => {
  assert.equal(deploymentSpec({ port: 0 }).port, defaultPort);
  assert.equal(deploymentSpec({ port: 1 }).port, 1);
  assert.equal(deploymentSpec({ port: 65_535 }).port, 65_535);
});

test("no replicas, no build and no command are all right", () => {
  const spec = deploymentSpec({ replicas: 0, buildId: "", command: [] });
  assert.deepEqual([spec.replicas, spec.buildId, spec.command], [0, "", []]);
});

test("amounts become numbers", () => {
  const spec = deploymentSpec({ cpuMillicores: 64_000n, memoryMib: 262_144n });
  assert.deepEqual([spec.cpuMillicores, spec.memoryMib], [64_000, 262_144]);
});

test("an argument may have spaces, line breaks and any letter", () => {
  const command = ["sh", "-c", "echo 'h\u00e9llo \u{1f600}'\n\tsleep 1", ""];
  assert.deepEqual(deploymentSpec({ command }).command, command);
});

test("an absent, empty or null healthcheck is none", () => {
  for (const none of [undefined, new Uint8Array(), utf8("null"), utf8(" null ")]) {
    assert.equal(deploymentSpec(none === undefined ? {} : { healthcheck: none }).healthcheck, undefined);
  }
});

test("what a healthcheck leaves out, has as null or has besides is no mistake", () => {
  const expected = {
    method: "GET",
    path: "/",
    intervalSeconds: 0,
    timeoutSeconds: 0,
    failureThreshold: 0,
    initialDelaySeconds: 0,
  };
  for (const json of [{}, { method: "", path: "" }, { path: null, timeoutSeconds: null, added: "later" }]) {
    assert.deepEqual(deploymentSpec(healthcheck(json)).healthcheck, expected);
  }
});

test("the largest blob that fits makes a variable that Linux accepts", () => {
  const room = blobBytesMax - JSON.stringify({ secrets: { A: "" } }).length;
  const { secretsBlob } = deploymentSpec(secrets({ secrets: { A: "x".repeat(room) } }));
  const bytes = `UNKEY_ENCRYPTED_ENV=${secretsBlob}\0`.length;
  assert.ok(bytes <= 131_072 && bytes > 131_072 - 4, String(bytes));
});

test("a tenant may have variables that only resemble krane's", () => {
  deploymentSpec(secrets({ secrets: { UNKEY_ROOT_KEY: "x", port: "x", "my.port-1": "x", _A: "x" } }));
  deploymentSpec(secrets({}));
});

test("images may be restricted to registries, which hosts of any spelling name", () => {
  const pathsFor = (image: string, registries: readonly string[]) =>
    problemsOf(parseApplyDeployment(applyDeployment({ image }), { registries })).map(({ path }) => path);
  assert.deepEqual(pathsFor("registry.example/web", ["Registry.Example"]), []);
  assert.deepEqual(pathsFor("nginx", ["registry.example", "index.docker.io"]), []);
  assert.deepEqual(pathsFor("nginx", ["registry.example"]), ["image"]);
  assert.deepEqual(pathsFor("registry.example.evil/web", ["registry.example"]), ["image"]);
});

test("a delete names its object by the same rules", () => {
  const parse = (k8sNamespace: string, k8sName: string) =>
    parseDeleteDeployment(create(DeleteDeploymentSchema, { k8sNamespace, k8sName }), rules);
  assert.deepEqual(parse("acme", "web"), { kind: "valid", spec: { namespace: "acme", name: "web" } });
  const paths = (namespace: string, name: string) =>
    problemsOf(parse(namespace, name)).map(({ path }) => path);
  assert.deepEqual(paths("", ""), ["k8s_namespace", "k8s_name"]);
  for (const namespace of ["kube-system", "default", "sentinel", "platform", "a/b"]) {
    assert.deepEqual(paths(namespace, "web"), ["k8s_namespace"], namespace);
  }
  assert.deepEqual(paths("acme", "../web"), ["k8s_name"]);
});
