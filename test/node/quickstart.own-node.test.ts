// docs/quickstart.md, typed as it is into one shell: a cluster like kind's, without Cilium, and stand-ins for the public images.
// What the page says about clouds, kind and Docker is left out; the image is on the node already.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import type { Pod } from "kubernetes-types/core/v1.js";
import { helm, resolveGoTool } from "../../tools/go-tool.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { eventually } from "../support/eventually.ts";
import { patience } from "../support/node/tenants.ts";
import { openTypedShell, type TypedShell } from "../support/node/typed-shell.ts";
import { provideVolumes } from "../support/node/volumes.ts";
import { projectRoot } from "../support/project-files.ts";
import { type PageBlock, quickstartBlocks } from "../support/quickstart-page.ts";

const never = new AbortController().signal;
const cluster = clusterUnderTest();
const blocks = quickstartBlocks();
const limit = { timeout: 900_000 };

let shell: TypedShell;

// What a person has before the page begins.
before(async () => {
  const binary = await resolveGoTool(helm, process.env, { report: (line) => console.error(line) }, never);
  assert.ok(binary.kind === "ready", "helm is missing");
  await provideVolumes(cluster, join(dirname(cluster.dir), "volumes"));
  await cluster.kubectl(["delete", "crd", "ciliumnetworkpolicies.cilium.io"]);
  const home = join(cluster.dir, "home");
  await mkdir(home);
  const env = {
    PATH: [dirname(binary.path), cluster.binariesDir, process.env["PATH"]].join(":"),
    HOME: home,
    TMPDIR: process.env["TMPDIR"],
    KUBECONFIG: cluster.kubeconfigPath,
    repository: "registry.example/krane",
  };
  shell = openTypedShell({ cwd: projectRoot, env });
});
after(() => shell.close());

/** What is left of krane and of the page's program in the whole cluster. */
async function leftovers(): Promise<readonly string[]> {
  const kinds = "namespaces,clusterroles,clusterrolebindings,validatingadmissionpolicies";
  const all = await cluster.kubectl(["get", kinds, "-o", "name"]);
  return all.split("\n").filter((name) => /krane|sentinel|hello/.test(name));
}

async function helloPods() {
  const printed = await cluster.kubectl(["--namespace", "hello", "get", "pods", "-o", "json"]);
  const { items } = JSON.parse(printed) as { readonly items: readonly Pod[] };
  return items
    .filter(({ metadata }) => metadata?.deletionTimestamp === undefined)
    .map(({ metadata, spec }) => ({ uid: metadata?.uid, runtimeClass: spec?.runtimeClassName }));
}

async function helloUids() {
  return (await helloPods()).map(({ uid }) => uid).sort();
}

const noSandbox = /trusted code only: new deployments run without a sandbox/;
const noPolicies = /nothing isolates tenants on the network/;

/** By what a block contains: what a reader must see after it. */
const checks: readonly (readonly [command: string, check: (printed: string) => unknown])[] = [
  [
    "krane doctor",
    (printed) => {
      for (const warning of [noSandbox, noPolicies]) assert.match(printed, warning);
      assert.match(printed, /^problems: 0, warnings: 2,/m);
    },
  ],
  [
    "krane status",
    (printed) => {
      for (const warning of [noSandbox, noPolicies]) assert.match(printed, warning);
    },
  ],
  [
    "krane why",
    async (printed) => {
      assert.match(printed, /Up to date/);
      assert.deepEqual(
        (await helloPods()).map(({ runtimeClass }) => runtimeClass),
        [undefined, undefined],
      );
    },
  ],
  ["8080:80", (printed) => assert.equal(printed, "hello")],
  [
    "krane rollout undo",
    (printed) => {
      for (const release of [2, 1]) assert.ok(printed.includes(`is ready, on release ${release}, 2/2 pods`));
    },
  ],
  ["krane events", (printed) => assert.match(printed, /release_current/)],
];

async function typeBlock({ text, section }: PageBlock): Promise<string> {
  const begun = performance.now();
  const printed = await shell.type(text);
  console.error(`quickstart: ${section}: ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  return printed;
}

async function typeSections(
  isWanted: (section: string) => boolean,
  whenInstalled: () => Promise<unknown> = async () => undefined,
): Promise<void> {
  let printed = "";
  for (const block of blocks.filter(({ section }) => isWanted(section))) {
    if (block.kind === "prints") assert.equal(printed, block.text, block.section);
    if (block.kind !== "run") continue;
    if (block.text.includes("krane doctor")) await whenInstalled();
    printed = await typeBlock(block);
    for (const [command, check] of checks) if (block.text.includes(command)) await check(printed);
  }
}

const isRemoval = (section: string) => section.startsWith("8. ");

test("every command of docs/quickstart.md works, and shows what the page says", limit, async () => {
  for (const [command] of checks)
    assert.ok(
      blocks.some(({ kind, text }) => kind === "run" && text.includes(command)),
      command,
    );
  await typeSections((section) => !isRemoval(section));
});

const leaseHolder = () =>
  cluster.kubectl([
    "--namespace",
    "krane",
    "get",
    "lease",
    "krane-local.dev",
    "-o",
    "jsonpath={.spec.holderIdentity}",
  ]);

/** Of its last release: the others drain for half a minute, and their pods are then gone. */
const allAreReady = () =>
  eventually(
    "the control plane says that all three pods are ready, and no others are left",
    async () => {
      assert.match(await shell.type("krane get app hello"), /3\/3 +Ready/);
      assert.equal((await helloPods()).length, 3);
    },
    patience,
  );

test(
  "an uninstall leaves the program running, and a new install takes it over with its database",
  limit,
  async () => {
    // The page ends with a ReplicaSet that was deleted: its pods are new, and the last of them may not be ready yet.
    await allAreReady();
    const before = await helloUids();
    assert.equal(before.length, 3);
    await shell.type('kill "$tunnel"\nhelm uninstall krane --namespace krane --wait');
    assert.deepEqual(await helloUids(), before);
    // The uninstall takes the agent's rights away with the agent, so it cannot give up its lease. The next one leads once that
    // has expired, and until then krane doctor warns of it.
    const former = await leaseHolder();
    await typeSections(
      (section) => section.startsWith("5. ") || section.startsWith("6. "),
      () => eventually("a new agent leads", async () => assert.notEqual(await leaseHolder(), former)),
    );
    await allAreReady();
    assert.deepEqual(await helloUids(), before);
  },
);

test("turning on the sandbox replaces no pod, and new pods are in it", limit, async () => {
  const before = await helloUids();
  await typeBlock(blocks.find(({ needs }) => needs === "gVisor") ?? assert.fail("no block for gVisor"));
  await eventually("the template has the sandbox", async () => {
    const path = "jsonpath={.items[*].spec.template.spec.runtimeClassName}";
    assert.equal(await cluster.kubectl(["--namespace", "hello", "get", "replicasets", "-o", path]), "gvisor");
  });
  await eventually("the status no longer warns of it", async () =>
    assert.doesNotMatch(await shell.type("krane status"), noSandbox),
  );
  assert.match(await shell.type("krane why hello"), /3 from an older version/);
  assert.deepEqual(await helloUids(), before);
  await cluster.kubectl(["--namespace", "hello", "delete", "pods", "--all"]);
  await eventually("new pods are in the sandbox", async () => {
    const classes = (await helloPods()).map(({ runtimeClass }) => runtimeClass);
    assert.deepEqual(classes, ["gvisor", "gvisor", "gvisor"]);
  });
});

test("the chart's notes name commands that remove what krane created", limit, async () => {
  const notes = await shell.type("helm get notes krane --namespace krane");
  const removal = [...notes.matchAll(/^ {2}(kubectl delete .*)$/gm)].map(([, command]) => command);
  const removed = await shell.type(
    removal.map((each) => `${each} --dry-run=server --output name`).join("\n"),
  );
  assert.deepEqual(removed.trim().split("\n").sort(), [
    "namespace/hello",
    "namespace/sentinel",
    "replicaset.apps/hello-527639-1",
    "service/hello",
  ]);
});

test("the last section of the page removes everything", limit, async () => {
  await typeSections(isRemoval);
  assert.deepEqual(await leftovers(), []);
});
