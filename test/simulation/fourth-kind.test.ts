// A kind that krane does not have, from a descriptor alone: the unchanged engine streams, applies, repairs, deletes
// and reports it. See "a new kind in five steps" in CONTRIBUTING.md.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createRouterTransport } from "@connectrpc/connect";
import { Secret } from "../../src/config/secret.ts";
import { createControlPlane } from "../../src/control-plane/connection.ts";
import { createInProcessTransport } from "../../src/dev/in-process-transport.ts";
import { Controller } from "../../src/engine/controller.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { configMaps } from "../../src/kube/resources.ts";
import { type NoteReport, NoteService, NoteStateSchema, noteKind, noteRecipe } from "../support/note-kind.ts";
import { defaultOptions, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;
const ref = { namespace: "acme", name: "hello" };
const named = { k8sNamespace: ref.namespace, k8sName: ref.name };

/** A control plane that knows one note, and pushes every state of it to who watches. */
class NoteControlPlane {
  readonly reports: NoteReport[] = [];
  private states: MessageInitShape<typeof NoteStateSchema>[] = [];
  private wake: () => void = () => undefined;

  set(text: string): void {
    const version = BigInt(this.states.length + 1);
    this.push({ version, state: { case: "apply", value: { ...named, noteId: "n_1", text } } } as never);
  }

  delete(): void {
    this.push({ version: BigInt(this.states.length + 1), state: { case: "delete", value: named } } as never);
  }

  transport() {
    const plane = this;
    return createRouterTransport(({ service }) => {
      const handlers = {
        async *watchNotes(_: unknown, { signal }: { signal: AbortSignal }) {
          for (let next = 0; !signal.aborted; ) {
            const state = plane.states[next];
            if (state !== undefined) {
              next += 1;
              yield create(NoteStateSchema, state);
            } else await plane.news(signal);
          }
        },
        getDesiredNote() {
          const last = plane.states.at(-1);
          if (last === undefined) throw new ConnectError("no such note", Code.NotFound);
          return create(NoteStateSchema, last);
        },
        reportNote(report: unknown) {
          plane.reports.push(report as NoteReport);
          return {};
        },
      };
      // A service that was described at run time has no types to check its handlers by.
      service(NoteService, handlers as never);
    });
  }

  private push(state: MessageInitShape<typeof NoteStateSchema>): void {
    this.states.push(state);
    this.wake();
  }

  private news(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }
}

test("a fourth kind is streamed, applied, repaired, reported and deleted by the engine as it is", async () => {
  const world = await SimulatedRegion.create();
  const plane = new NoteControlPlane();
  plane.set("good morning");
  const token = { current: async () => new Secret("t"), refresh: () => undefined };
  const region = { platform: "dev", name: "local", label: "local.dev" };
  const { clock } = world;
  const controlPlane = createControlPlane(
    { controller: noteKind.controller, baseUrl: "http://in-memory", region, token },
    {
      clock,
      createLink: () => ({ transport: plane.transport(), generation: 1, close: async () => undefined }),
    },
  );
  const api = createKubeApi(createInProcessTransport(world.server, { userAgent: "krane" }));
  // Neither may help: what is seen here is seen by stream and watch.
  const options = { ...defaultOptions, resyncMs: 0, replayMs: 0 };
  const { controller } = world.createAgentOf(
    "notes",
    (deps) => new Controller(noteKind, noteRecipe, options, { ...deps, api, controlPlane }),
  );
  await world.resolved(controller.start());
  const text = async () => (await api.get(configMaps, ref, {}, never))?.data?.["text"];
  await world.until("it is applied", async () => (await text()) === "good morning");
  await world.until("it is reported", () => plane.reports.at(-1)?.text === "good morning");

  plane.set("good evening");
  await world.until("a change arrives", async () => (await text()) === "good evening");
  assert.equal(controller.status().name, "notes");

  const live = await api.get(configMaps, ref, {}, never);
  const edited = { metadata: ref, data: { text: "bad night" } };
  await api.apply(configMaps, edited, { fieldManager: "meddler", force: true }, never);
  await world.until("the edit is repaired", async () => (await text()) === "good evening");
  assert.equal((await api.get(configMaps, ref, {}, never))?.metadata?.uid, live?.metadata?.uid);

  plane.delete();
  await world.until("it is deleted", async () => (await text()) === undefined);
  await world.until("that is reported", () => plane.reports.at(-1)?.exists === false);
  await world.stop();
});
