// The embedded Kubernetes API server on a port, in a process of its own. Nothing creates pods: on command, each ReplicaSet
// gets as many running ones as it asks for.

import { administrator, createApiServer, startHttpServer } from "@krane/kube-apiserver";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSeededRandom } from "../../src/concurrency/random.ts";
import { ciliumDefinition } from "../../src/dev/cilium-definition.ts";
import { createInProcessTransport } from "../../src/dev/in-process-transport.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { customResourceDefinitions, namespaces, pods, replicaSets } from "../../src/kube/resources.ts";
import { servedClusterToken } from "../../test/support/served-cluster.ts";
import { serveCommands } from "../isolation/commands.ts";
import { runningPods } from "../scale/running-pods.ts";
import { takeTask, tellParent } from "./parent.ts";

export interface ScaleClusterFacts {
  readonly url: string;
  readonly commands: string;
}

export type ScaleClusterCommand =
  | { readonly do: "run pods" }
  /** Changes the image of a ReplicaSet by hand; answered when it was changed back, with the milliseconds that took. */
  | { readonly do: "edit"; readonly index: number }
  /** How many ReplicaSets have the tag. */
  | { readonly do: "count"; readonly tag: string };

takeTask<null>();
const deps = { clock: createSystemClock(), random: createSeededRandom(1) };
const server = createApiServer(deps, { staticTokens: new Map([[servedClusterToken, administrator]]) });
const never = new AbortController().signal;
const api = createKubeApi(createInProcessTransport(server, { userAgent: "kubectl" }));
await api.create(customResourceDefinitions, ciliumDefinition, {}, never);
await api.create(namespaces, { metadata: { name: "krane" } }, {}, never);
const { url } = await startHttpServer(server);
const key = { group: replicaSets.group, plural: replicaSets.plural };
const all = () => server.store.list(key) as unknown as readonly ReplicaSet[];

function runPods(): number {
  let made = 0;
  for (const owner of all())
    for (const pod of runningPods(owner, made + 1)) {
      const { namespace = "", name = "" } = pod.metadata ?? {};
      server.store.put({ group: pods.group, plural: pods.plural, namespace, name }, pod as never);
      made += 1;
    }
  return made;
}

async function edit(index: number): Promise<number> {
  const object = all()[index];
  const { namespace = "", name = "" } = object?.metadata ?? {};
  if (object === undefined) throw new Error(`there is no ReplicaSet ${index}`);
  const ref = { ...key, namespace, name };
  const imageNow = () => imageIn(server.store.get(ref) as unknown as ReplicaSet);
  const before = imageNow();
  const path = "/spec/template/spec/containers/0/image";
  const edits = [{ op: "replace", path, value: "registry.example/by-hand:1" }] as const;
  const beganMs = performance.now();
  await api.patch(replicaSets, object, edits, { fieldManager: "kubectl-edit" }, never);
  return new Promise((resolve) => {
    const stop = server.store.subscribe(() => {
      if (imageNow() !== before) return;
      stop();
      resolve(performance.now() - beganMs);
    });
  });
}

function imageIn(object: ReplicaSet): string | undefined {
  return object.spec?.template?.spec?.containers[0]?.image;
}

async function handle(command: ScaleClusterCommand): Promise<number> {
  switch (command.do) {
    case "run pods":
      return runPods();
    case "edit":
      return edit(command.index);
    case "count":
      return all().filter((object) => imageIn(object)?.endsWith(`:${command.tag}`)).length;
  }
}

const facts: ScaleClusterFacts = { url, commands: await serveCommands(handle) };
tellParent(facts);
