import assert from "node:assert/strict";
import { test } from "node:test";
import type { Service } from "kubernetes-types/core/v1.js";
import { FakeIo } from "../../test/support/fake-io.ts";
import { readProjectFile } from "../../test/support/project-files.ts";
import type { KubeObject } from "../kube/types.ts";
import { main } from "./main.ts";

function sentinel(id: string, region?: string): string {
  return `apiVersion: krane/v1
kind: Sentinel
${region === undefined ? "" : `region: ${region}\n`}id: ${id}
name: gate-${id}
workspace: ws_1
project: p_1
environment: env_1
image: registry.example/sentinel:1
`;
}

async function render(files: Readonly<Record<string, string>>, ...flags: readonly string[]) {
  const io = new FakeIo(files);
  const code = await main(["render", ...flags], {}, io);
  return { code, out: io.stdout.text, err: io.stderr.text };
}

test("mistakes in documents are said with file and line, and nothing is shown", async () => {
  const { code, out, err } = await render({ "a.yaml": `${sentinel("one")}replicaz: 2\n` }, "-f", "a.yaml");
  assert.deepEqual([code, out], [1, ""]);
  assert.equal(err, "krane: a.yaml:9: replicaz is not a known field; did you mean replicas?\n");
});

test("a sentinel needs a region", async () => {
  const files = { "a.yaml": sentinel("one") };
  const silent = await render(files, "-f", "a.yaml");
  assert.equal(silent.code, 64);
  assert.match(silent.err, /a\.yaml:1: .*--region/);
  const said = await render(files, "-f", "a.yaml", "--region", "here.dev");
  assert.match(said.out, /region = "here\.dev"/);
});

test("of several regions one is chosen", async () => {
  const files = { "a.yaml": sentinel("one", "a.dev"), "b.yaml": sentinel("two", "b.dev") };
  const both = await render(files, "-f", "a.yaml", "-f", "b.yaml");
  assert.equal(both.code, 64);
  assert.match(both.err, /several regions \(a\.dev, b\.dev\); choose one with --region/);
  const one = await render(files, "-f", "a.yaml", "b.yaml", "--region", "b.dev");
  assert.equal(one.code, 0);
  assert.match(one.err, /skipped 1 of 2 documents, which belong to other regions/);
  assert.match(one.out, /name: gate-two\n/);
  assert.doesNotMatch(one.out, /gate-one/);
});

test("two documents of one sentinel are refused, also where only one of them names the region", async () => {
  const files = { "a.yaml": `${sentinel("one")}---\n${sentinel("one", "a.dev")}` };
  const { code, out, err } = await render(files, "-f", "a.yaml");
  assert.deepEqual([code, out], [1, ""]);
  assert.match(err, /^krane: a\.yaml:10: id is already used by another document, at a\.yaml:1$/m);
});

test("an app is its first release, and the Service that leads there", async () => {
  const files = { "hello.yaml": readProjectFile("examples/hello.yaml") };
  const { out } = await render(files, "-f", "hello.yaml", "-o", "json");
  const { items } = JSON.parse(out) as { readonly items: readonly KubeObject[] };
  assert.deepEqual(
    items.map(({ kind }) => kind),
    ["Namespace", "CiliumNetworkPolicy", "ReplicaSet", "CiliumNetworkPolicy", "Service"],
  );
  const service = items.at(-1) as Service;
  assert.equal(service.metadata?.name, "hello");
  assert.equal(service.spec?.selector?.["unkey.com/deployment.id"], "app_hello-1");
  const silent = { "hello.yaml": files["hello.yaml"].replace("expose: cluster\n", "") };
  assert.doesNotMatch((await render(silent, "-f", "hello.yaml")).out, /kind: Service/);
});

test("rules of the configuration hold for the documents too", async () => {
  const config = `region = "a.dev"
[control]
url = "http://127.0.0.1:1"
token = "a-token-of-no-use"
[isolation]
registries = ["ghcr.io"]
`;
  const files = { "a.yaml": sentinel("one"), "krane.toml": config };
  const { code, err } = await render(files, "-f", "a.yaml", "-c", "krane.toml");
  assert.equal(code, 1);
  assert.match(err, /a\.yaml:8: image is of registry "registry\.example"/);
  assert.equal((await render(files, "-f", "a.yaml", "-c", "missing.toml")).code, 78);
});

test("a file that is not there is named", async () => {
  const { code, err } = await render({}, "-f", "a.yaml");
  assert.equal(code, 3);
  assert.match(err, /a\.yaml: cannot be read: no such file/);
});
