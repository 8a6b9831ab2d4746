import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type AnyDocument, idOf, loadDocumentKinds } from "../kinds/documents.ts";
import { describeProblems } from "../model/field-problem.ts";
import { type DocumentFile, fileCharsMax, parseDocumentNames, parseDocuments } from "./parse.ts";
import { renderDocumentProblems } from "./problem.ts";

const kinds = await loadDocumentKinds();

const hello = `apiVersion: krane/v1
kind: Deployment
region: local.dev
id: d_hello
name: hello
namespace: demo
workspace: ws_demo
project: proj_demo
environment: env_demo
image: registry.example/hello:1
`;

const sentinel = `apiVersion: krane/v1
kind: Sentinel
id: s_demo
name: demo-sentinel
workspace: ws_demo
project: proj_demo
environment: env_demo
image: registry.example/sentinel:1
`;

const policy = `apiVersion: krane/v1
kind: Policy
id: cnp_1
name: allow-dns
namespace: demo
deployment: d_hello
policy:
  apiVersion: cilium.io/v2
  kind: CiliumNetworkPolicy
  spec:
    endpointSelector: {}
`;

const environment = `apiVersion: krane/v1
kind: Environment
id: env_demo
workspace: ws_demo
project: proj_demo
`;

function parsed(text: string): readonly AnyDocument[] {
  const outcome = parseDocuments([{ name: "a.yaml", text }], kinds);
  if (outcome.kind === "invalid") throw new Error(renderDocumentProblems(outcome.problems));
  return outcome.documents;
}

function complaints(text: string | readonly DocumentFile[]): readonly string[] {
  const files = typeof text === "string" ? [{ name: "a.yaml", text }] : text;
  const outcome = parseDocuments(files, kinds);
  assert.equal(outcome.kind, "invalid", "it was taken");
  return outcome.kind === "invalid" ? renderDocumentProblems(outcome.problems).trimEnd().split("\n") : [];
}

test("a document with what it must have gets the defaults for the rest", () => {
  const [document] = parsed(hello);
  assert.equal(document?.kind, "deployment");
  if (document?.kind !== "deployment") return;
  const { $typeName, encryptedEnvironmentVariables, ...spec } = document.spec;
  assert.deepEqual(spec, {
    k8sNamespace: "demo",
    k8sName: "hello",
    workspaceId: "ws_demo",
    projectId: "proj_demo",
    environmentId: "env_demo",
    deploymentId: "d_hello",
    image: "registry.example/hello:1",
    replicas: 1,
    cpuMillicores: 250n,
    memoryMib: 256n,
    command: [],
    env: {},
    port: 0,
    shutdownSignal: "",
  });
  assert.equal(encryptedEnvironmentVariables.length, 0);
  assert.equal(document.region, "local.dev");
  assert.deepEqual(document.source, { file: "a.yaml", line: 1 });
});

test("several documents in one file keep their order and know where they stand", () => {
  const documents = parsed(`# words\n${hello}---\n---\n${sentinel}---\n${policy}---\n${environment}`);
  assert.deepEqual(
    documents.map((document) => [document.kind, idOf(document), document.source.line]),
    [
      ["deployment", "d_hello", 2],
      ["sentinel", "s_demo", 14],
      ["policy", "cnp_1", 23],
      ["environment", "env_demo", 35],
    ],
  );
});

test("JSON is taken as it is", () => {
  const text = `{\n\t"apiVersion": "krane/v1",\n\t"kind": "Environment", "id": "env_1", "workspace": "ws_1", "project": "p_1"}`;
  assert.deepEqual(parsed(text)[0], {
    kind: "environment",
    spec: { id: "env_1", workspaceId: "ws_1", projectId: "p_1" },
    source: { file: "a.yaml", line: 1 },
  });
});

test("an anchor saves writing the same twice", () => {
  const [document] = parsed(`${hello}shutdownSignal: &signal SIGINT\ncommand: [run, *signal]\n`);
  assert.deepEqual(document?.kind === "deployment" && document.spec.command, ["run", "SIGINT"]);
});

// Each case: an addition to a valid document, and all messages that it causes.
const mistakes: readonly (readonly [addition: string, ...said: string[]])[] = [
  ["replicaz: 2", "a.yaml:11: replicaz is not a known field; did you mean replicas?"],
  ["cpu_millicores: 250", "a.yaml:11: cpu_millicores is not a known field; did you mean cpu?"],
  ['replicas: "2"', "a.yaml:11: replicas must be a whole number, but is text"],
  ["replicas: 1.5", "a.yaml:11: replicas must be a whole number, but is the number 1.5"],
  ["replicas: -1", "a.yaml:11: replicas must be from 0 to 10000, but is -1"],
  ["replicas: 99999999999", "a.yaml:11: replicas must be from 0 to 10000, but is 99999999999"],
  ["replicas:", "a.yaml:11: replicas has no value; set one, or remove the field"],
  ["id: d_other", 'a.yaml:11: has "id" twice; it stands in line 4 already'],
  ["buildId: 12", "a.yaml:11: buildId must be text, but is the number 12; put it into quotes"],
  ["cpu: 0.0005", 'a.yaml:11: cpu must be cores, such as 250m, 1 or 0.5, but is "0.0005"'],
  ["cpu: 0", "a.yaml:11: cpu must be from 1 to 1024000, but is 0 (in millicores)"],
  ["memory: 256", 'a.yaml:11: memory must be whole MiB, such as 256Mi or 1Gi, but is "256"'],
  ["memory: [1]", "a.yaml:11: memory must be whole MiB, such as 256Mi or 1Gi, but is a list"],
  ["port: 70000", "a.yaml:11: port must be from 1 to 65535, but is 70000"],
  ["command: node server.js", "a.yaml:11: command must be a list of text, but is text"],
  [
    "command:\n- node\n- 8080",
    "a.yaml:13: command[1] must be text, but is the number 8080; put it into quotes",
  ],
  [
    "env:\n  LOG_LEVEL: info\n  WORKERS: 2",
    'a.yaml:13: env["WORKERS"] must be text, but is the number 2; put it into quotes',
  ],
  ["env:\n  PORT: '80'", 'a.yaml:12: env["PORT"] is a variable that krane sets itself'],
  ["env:\n  __proto__: x", 'a.yaml:12: env["__proto__"] cannot be used as a name'],
  ["env: [A]", "a.yaml:11: env must be a mapping from names to text, but is a list"],
  [
    "shutdownSignal: SIGHUP",
    'a.yaml:11: shutdownSignal must be empty or one of SIGTERM, SIGINT, SIGQUIT, SIGKILL, but is "SIGHUP"',
  ],
  ["healthcheck: {path: health}", 'a.yaml:11: healthcheck.path must start with "/", but is "health"'],
  [
    "healthcheck:\n  path: /\n  interval: 5",
    "a.yaml:13: healthcheck.interval is not a known field; these are: method, path, intervalSeconds, timeoutSeconds, failureThreshold, initialDelaySeconds",
  ],
  ["healthcheck: []", "a.yaml:11: healthcheck must be a mapping, but is a list"],
  [
    "encryptedSecrets:\n  PASSWORD: hunter2",
    'a.yaml:12: encryptedSecrets["PASSWORD"] is not what `krane vault encrypt` prints; never put a plain value here',
  ],
  [
    "image: !!str x",
    "a.yaml:11: has a tag; only plain YAML is taken",
    'a.yaml:11: has "image" twice; it stands in line 10 already',
  ],
  [
    "port: .inf",
    "a.yaml:11: has a number without end",
    "a.yaml:11: port has no value; set one, or remove the field",
  ],
  ["1: x", "a.yaml:11: has a key that is no text; put it into quotes"],
  [
    "command: &c [*c]",
    "a.yaml:11: has an alias without its anchor before it",
    "a.yaml:11: command[0] must be text, but is empty; put it into quotes",
  ],
  [
    '"a\\u001b[2J": x',
    'a.yaml:11: ["a\\u001b[2J"] is not a known field; these are: apiVersion, kind, region, id, name, namespace, workspace, project, environment, image, pullSecret, replicas, cpu, memory, port, command, env, shutdownSignal, buildId, healthcheck, encryptedSecrets',
  ],
];

for (const [addition, ...said] of mistakes) {
  test(`it says what is wrong with ${JSON.stringify(addition)}`, () => {
    assert.deepEqual(complaints(`${hello}${addition}\n`), said);
  });
}

test("what is missing is said all at once, in the words of the document", () => {
  assert.deepEqual(complaints("apiVersion: krane/v1\nkind: Deployment\nimage: a b\n").toSorted(), [
    "a.yaml:1: environment is required",
    "a.yaml:1: id is required",
    "a.yaml:1: name is required",
    "a.yaml:1: namespace is required",
    "a.yaml:1: project is required",
    "a.yaml:1: workspace is required",
    'a.yaml:3: image has a space, a control character or a letter outside ASCII: "a b"',
  ]);
});

test("a document of another program or of no known kind is named as such, and nothing else of it", () => {
  assert.deepEqual(complaints("apiVersion: apps/v1\nkind: Deployment\nmetadata: {}\n"), [
    'a.yaml:1: apiVersion must be krane/v1, but is "apps/v1"; Kubernetes manifests are for kubectl',
  ]);
  assert.deepEqual(complaints("apiVersion: krane/v1\nkind: deployments\nimage: 3\n"), [
    'a.yaml:2: kind must be App, Deployment, Sentinel, Policy, Route or Environment, but is "deployments"; did you mean Deployment?',
  ]);
  assert.deepEqual(complaints("kind: [1]\n"), [
    "a.yaml:1: apiVersion must be krane/v1, but is absent",
    "a.yaml:1: kind must be App, Deployment, Sentinel, Policy, Route or Environment, but is no text",
  ]);
  assert.deepEqual(complaints("just words\n"), ["a.yaml:1: the document must be a mapping, but is text"]);
  assert.deepEqual(complaints("# nothing\n---\n"), ["a.yaml:1: holds no document"]);
});

test("problems come in the order of the files and their lines", () => {
  const wrong = `replicaz: 2\n${hello.replace("id: d_hello", "id: d hello")}port: 99999\n`;
  const files = ["b.yaml", "a.yaml"].map((name) => ({ name, text: `${wrong}---\n${hello}${hello}` }));
  const places = complaints(files).map((line) => line.split(":").slice(0, 2).join(":"));
  const inFile = (name: string) => places.filter((place) => place.startsWith(name));
  assert.deepEqual(places, [...inFile("b.yaml"), ...inFile("a.yaml")]);
  for (const name of ["a.yaml", "b.yaml"]) {
    const lines = inFile(name).map((place) => Number(place.split(":")[1]));
    assert.ok(lines.length > 3);
    assert.deepEqual(
      lines,
      lines.toSorted((one, other) => one - other),
    );
  }
});

test("problems inside a policy have its lines", () => {
  assert.deepEqual(complaints(policy.replace("    endpointSelector: {}\n", "    nodeSelector: {}\n")), [
    "a.yaml:11: policy.spec.nodeSelector is not for policies of a namespace",
  ]);
  assert.deepEqual(complaints(policy.replace("deployment: d_hello", "deployment: d hello")), [
    'a.yaml:6: deployment must be at most 63 letters, digits, "-", "_" or ".", but is "d hello"',
  ]);
});

test("text that is no YAML is refused with its line, and the documents around it are still looked at", () => {
  const said = complaints(`a: [1\n---\n${hello}replicaz: 2\n`);
  assert.match(said[0] ?? "", /^a\.yaml:\d: is not valid YAML: /);
  assert.ok(
    said.includes("a.yaml:13: replicaz is not a known field; did you mean replicas?"),
    said.join("\n"),
  );
});

test("two documents that would undo each other are refused", () => {
  const twin = hello.replace("name: hello", "name: other");
  const rival = hello.replace("id: d_hello", "id: d_rival");
  const files = [
    { name: "a.yaml", text: hello },
    { name: "b.yaml", text: `${twin}---\n${rival}` },
  ];
  assert.deepEqual(complaints(files), [
    "b.yaml:1: id is already used by another document, at a.yaml:1",
    "b.yaml:12: name is already used by another document, at a.yaml:1",
  ]);
  assert.equal(parsed(`${hello}---\n${hello.replace("local.dev", "other.dev")}`).length, 2);
});

test("a deployment in an environment of somebody else is refused before the environment is changed", () => {
  const environment = `apiVersion: krane/v1
kind: Environment
region: local.dev
id: env_demo
workspace: ws_demo
project: proj_other
`;
  assert.deepEqual(complaints(`${environment}---\n${hello}`), [
    "a.yaml:8: project differs from that of its environment, at a.yaml:1",
  ]);
  assert.equal(parsed(`${environment.replace("proj_other", "proj_demo")}---\n${hello}`).length, 2);
  assert.equal(parsed(`${environment.replace("local.dev", "other.dev")}---\n${hello}`).length, 2);
});

test("a few lines that stand for millions are refused without being written out", () => {
  const levels = "bcdefghij".split("").map((name) => {
    const before = String.fromCharCode(name.charCodeAt(0) - 1);
    return `  ${name}: &${name} [${Array.from({ length: 9 }, () => `*${before}`).join(", ")}]`;
  });
  const bomb = `${policy}  a: &a [x]\n${levels.join("\n")}\n`;
  assert.match(complaints(bomb).join("\n"), /has more than 200000 parts with its aliases written out/);
});

test("a file that is too long or nested too deeply is refused before it is read", () => {
  assert.deepEqual(complaints(`a: ${"x".repeat(fileCharsMax)}`), [
    "a.yaml:1: is longer than 4194304 characters; split it into several files, and give them all to -f, or the folder they are in",
  ]);
  assert.deepEqual(complaints(`a:\n${"[".repeat(100_000)}`), ["a.yaml:2: is nested deeper than 64 levels"]);
  assert.deepEqual(complaints(`${"- ".repeat(20_000)}x`), ["a.yaml:1: is nested deeper than 64 levels"]);
});

test("a file with more signs than anybody writes is refused before it is understood", () => {
  const said = /^a\.yaml:[12]: has more than 200000 signs and words in one document$/;
  for (const piece of ["a: [", "!t ", "[]\n", '"', "%Y\n"]) {
    const text = piece.repeat(Math.floor(fileCharsMax / piece.length));
    assert.match(complaints(text).join("\n"), said, piece);
  }
});

test("thousands of deployments are one file, and more than a file can hold is told how to be split", () => {
  const many = (count: number) =>
    Array.from({ length: count }, (_, index) => hello.replace(/^id: .*$/m, `id: d_${index}`))
      .map((text, index) => text.replace(/^name: .*$/m, `name: web-${index}`))
      .join("---\n");
  const outcome = parseDocuments([{ name: "a.yaml", text: many(5_000) }], kinds);
  assert.equal(outcome.kind === "valid" && outcome.documents.length, 5_000);
  assert.equal(
    outcome.kind === "valid" && outcome.documents[4_999]?.source.line,
    4_999 * hello.split("\n").length + 1,
  );
  const [said] = complaints("a: [1, 2, 3]\n---\n".repeat(200_000));
  assert.match(
    said ?? "",
    /^a\.yaml:1: has more than 1000000 signs and words; split it into several files, /,
  );
});

test("a document that is too long is named by its line", () => {
  assert.deepEqual(complaints(`${environment}---\na: [${"1,".repeat(150_000)}]\n`), [
    `a.yaml:${environment.split("\n").length}: has more than 200000 signs and words in one document`,
  ]);
});

test("a file that is not UTF-8 is refused at its line instead of being sent with strange characters", () => {
  const latin1 = Buffer.from(`${hello}command: [grüße]\n`, "latin1").toString("utf8");
  const line = hello.split("\n").length;
  assert.deepEqual(complaints(latin1), [
    `a.yaml:${line}: has a character that is not UTF-8; save the file as UTF-8, or write \\ufffd where U+FFFD is meant`,
  ]);
});

test("a file of Windows, with its mark at the start and its ends of lines, is read like any other", () => {
  const outcome = parseDocuments(
    [{ name: "a.yaml", text: `\ufeff${hello.replaceAll("\n", "\r\n")}` }],
    kinds,
  );
  assert.equal(outcome.kind, "valid");
});

test("a file that is wrong everywhere is refused with a few words", () => {
  const said = complaints(`a: [${",".repeat(150_000)}]`);
  assert.equal(said.length, 5);
  assert.ok(complaints("!".repeat(10_000)).every((line) => line.length < 300));
});

test("a result of krane get and a manifest of Kubernetes are recognised", () => {
  const problemsOf = (text: string) => {
    const outcome = parseDocuments([{ name: "a.yaml", text }], kinds);
    assert.equal(outcome.kind, "invalid");
    return outcome.kind === "invalid" ? outcome.problems.map(({ message }) => message) : [];
  };
  for (const text of ["objects: []\n", "apps: []\n", "app: {spec: {}}\n", '{"ref": {"id": "d_1"}}\n'])
    assert.match(problemsOf(text).join("; "), /^is a result of krane get; krane get -o document [^;]*$/);
  const manifest = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n";
  assert.deepEqual(problemsOf(manifest), [
    'must be krane/v1, but is "apps/v1"; Kubernetes manifests are for kubectl',
  ]);
});

test("whatever happens to a file, it is taken or refused with lines that are in it", () => {
  const whole = `${hello}healthcheck: {path: /up}\ncommand: [a, "b"]\n---\n${policy}---\n${environment}`;
  const pieces = [
    "\n",
    "  ",
    "- ",
    "---\n",
    ": ",
    "&a ",
    "*a ",
    "!!x ",
    "[",
    "}",
    '"',
    "'",
    "|",
    "#",
    "\t",
    "%",
    "\u2028",
    "id: 1\n",
  ];
  const cut = fc.tuple(fc.nat(whole.length), fc.nat(20), fc.constantFrom("", ...pieces));
  fc.assert(
    fc.property(fc.array(cut, { minLength: 1, maxLength: 4 }), (cuts) => {
      let text = whole;
      for (const [at, length, piece] of cuts) text = text.slice(0, at) + piece + text.slice(at + length);
      const outcome = parseDocuments([{ name: "a.yaml", text }], kinds);
      if (outcome.kind === "valid") return;
      const lines = text.split("\n").length;
      assert.ok(outcome.problems.length > 0);
      for (const { line, message } of outcome.problems)
        assert.ok(line >= 1 && line <= lines, `${line}: ${message}`);
    }),
    { numRuns: 300 },
  );
});

test("rules of the agent's own hold where they are given", () => {
  const outcome = parseDocuments([{ name: "a.yaml", text: hello }], kinds, {
    registries: ["ghcr.io"],
    ownNamespace: "demo",
  });
  assert.equal(
    outcome.kind === "invalid" && describeProblems(outcome.problems),
    'namespace "demo" is the namespace that krane itself runs in; image is of registry "registry.example", which is not on the list of allowed ones',
  );
});

test("for names a kind and an id are enough, and no less", () => {
  for (const kind of ["Deployment", "Sentinel", "Policy", "Environment"]) {
    const namesOf = (more: string) =>
      parseDocumentNames([{ name: "a.yaml", text: `apiVersion: krane/v1\nkind: ${kind}\n${more}` }], kinds);
    const name = { kind: kind.toLowerCase(), id: "x_1", source: { file: "a.yaml", line: 1 } };
    assert.deepEqual(namesOf("id: x_1\n"), { kind: "valid", names: [name] });
    for (const more of ["", "id: ''\n", "id: a b\n", "id: x_1\nregion: ''\n", "id: x_1\nregoin: a\n"])
      assert.equal(namesOf(more).kind, "invalid", `${kind} ${more}`);
  }
});
