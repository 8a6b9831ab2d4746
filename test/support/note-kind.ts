// A fourth, made-up kind: a note is a ConfigMap with one text. It is a descriptor and a recipe, as every kind is,
// and shows what a kind costs: nothing of krane's own code names it.

import { create, createFileRegistry, type Message } from "@bufbuild/protobuf";
import type { GenMessage } from "@bufbuild/protobuf/codegenv2";
import {
  type FieldDescriptorProto_Label,
  FieldDescriptorProto_Type as FieldType,
  FileDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";
import type { ConfigMap } from "kubernetes-types/core/v1.js";
import { ContentHashes } from "../../src/engine/applied-content.ts";
import type { ControllerRecipe, DefinitionDeps } from "../../src/engine/controller-definition.ts";
import {
  type ControllerDefinition,
  defineKind,
  isContentChange,
} from "../../src/engine/controller-definition.ts";
import type { DesiredEntry } from "../../src/engine/desired-store.ts";
import type { EngineKind, OrderedSpec } from "../../src/engine/engine-kind.ts";
import {
  type LiveProjection,
  type OwnedTarget,
  ownedObject,
  ownedTarget,
  type Plan,
} from "../../src/engine/plan.ts";
import { WatchedKind } from "../../src/engine/watched-kind.ts";
import { configMaps } from "../../src/kube/resources.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { collectProblems } from "../../src/model/field-problem.ts";
import { labelKeys, managedBy } from "../../src/model/labels.ts";
import { withManifestHash } from "../../src/model/manifest-hash.ts";
import { parseId, parseName } from "../../src/model/message-fields.ts";
import { judgeIdentity, judgeOwnership } from "../../src/model/ownership.ts";
import type { Seal } from "../../src/model/seal.ts";

type NoteName = { k8sNamespace: string; k8sName: string };
type ApplyNote = Message<"note.v1.ApplyNote"> & NoteName & { noteId: string; text: string };
type DeleteNote = Message<"note.v1.DeleteNote"> & NoteName;
export type NoteState = Message<"note.v1.NoteState"> & {
  version: bigint;
  state: { case: "apply"; value: ApplyNote } | { case: "delete"; value: DeleteNote } | { case: undefined };
};
export type NoteReport = Message<"note.v1.ReportNoteRequest"> & {
  k8sName: string;
  text: string;
  exists: boolean;
};

const text = (name: string, number: number) => ({ name, number, type: FieldType.STRING, label: optional });
const optional = 1 as FieldDescriptorProto_Label;
const part = (name: string, number: number, typeName: string) => ({
  ...{ name, number, typeName: `.note.v1.${typeName}`, label: optional },
  type: FieldType.MESSAGE,
  oneofIndex: 0,
});
const number64 = (name: string, number: number) => ({
  name,
  number,
  type: FieldType.UINT64,
  label: optional,
});
const names = [text("k8s_namespace", 1), text("k8s_name", 2)];
const method = (name: string, inputType: string, outputType: string, serverStreaming = false) => ({
  ...{ name, inputType: `.note.v1.${inputType}`, outputType: `.note.v1.${outputType}`, serverStreaming },
});

const registry = createFileRegistry(
  create(FileDescriptorProtoSchema, {
    name: "note/v1/note.proto",
    package: "note.v1",
    syntax: "proto3",
    messageType: [
      { name: "WatchNotesRequest", field: [number64("version_last_seen", 2)] },
      { name: "GetDesiredNoteRequest", field: [text("note_id", 1)] },
      { name: "ApplyNote", field: [...names, text("note_id", 3), text("text", 4)] },
      { name: "DeleteNote", field: names },
      {
        name: "NoteState",
        field: [part("apply", 1, "ApplyNote"), part("delete", 2, "DeleteNote"), number64("version", 3)],
        oneofDecl: [{ name: "state" }],
      },
      {
        name: "ReportNoteRequest",
        field: [
          ...[text("k8s_name", 1), text("text", 2)],
          { name: "exists", number: 3, type: FieldType.BOOL, label: optional },
        ],
      },
      { name: "ReportNoteResponse" },
    ],
    service: [
      {
        name: "NoteService",
        method: [
          method("WatchNotes", "WatchNotesRequest", "NoteState", true),
          method("GetDesiredNote", "GetDesiredNoteRequest", "NoteState"),
          method("ReportNote", "ReportNoteRequest", "ReportNoteResponse"),
        ],
      },
    ],
  }),
  () => undefined,
);

function found<T>(value: T | undefined): T {
  if (value === undefined) throw new TypeError("the schema of notes lacks something");
  return value;
}

const service = found(registry.getService("note.v1.NoteService"));
export const NoteService = service;
export const NoteStateSchema = found(registry.getMessage("note.v1.NoteState")) as GenMessage<NoteState>;
type ReportSchema = GenMessage<NoteReport>;
const rpc = service.method;

interface NoteSpec extends OrderedSpec {
  readonly namespace: string;
  readonly name: string;
  readonly noteId: string;
  readonly text: string;
}

const idLabel = "example.com/note.id";

export const noteKind = {
  controller: "notes",
  stateSchema: NoteStateSchema,
  rpcs: {
    watch: found(rpc["watchNotes"]),
    get: found(rpc["getDesiredNote"]),
    idField: "noteId",
    report: found(rpc["reportNote"]),
  },
  keyOf: ({ k8sNamespace, k8sName }: NoteName) => `${k8sNamespace}/${k8sName}`,
  idOf: ({ noteId }: ApplyNote) => noteId,
  parseApply: (message: ApplyNote) =>
    collectProblems(
      (refuse): NoteSpec => ({
        namespace: parseName("k8s_namespace", message.k8sNamespace, 63, refuse),
        name: parseName("k8s_name", message.k8sName, 63, refuse),
        noteId: parseId("note_id", message.noteId, refuse),
        text: message.text,
      }),
    ),
  parseDelete: (message: DeleteNote) =>
    collectProblems((refuse) => parseName("k8s_name", message.k8sName, 63, refuse)),
  orders: { longField: "text" },
} as unknown as EngineKind<typeof NoteStateSchema, NoteSpec, ReportSchema>;

export const noteRecipe: ControllerRecipe<NoteSpec, ReportSchema, string, unknown> = {
  define: (_, deps) => new NoteDefinition(deps),
};

interface NoteProjection extends LiveProjection {
  readonly noteId: string | undefined;
  readonly text: string;
}

class NoteDefinition implements ControllerDefinition<NoteSpec, string> {
  readonly watchedKinds;
  private readonly deps: DefinitionDeps<NoteSpec, ReportSchema>;
  private readonly notes: WatchedKind<ConfigMap, NoteProjection>;
  private readonly contentHashes = new ContentHashes<NoteSpec>();

  constructor(deps: DefinitionDeps<NoteSpec, ReportSchema>) {
    this.deps = deps;
    this.notes = new WatchedKind(
      {
        kind: configMaps,
        selection: { labelSelector: idLabel },
        project: (object) => projectNote(object, deps.seal),
        owned: true,
        required: true,
      },
      deps,
    );
    this.watchedKinds = [
      defineKind(this.notes, (change) => ({
        reconcile: isContentChange(change) ? [change.key] : [],
        report: [change.key],
      })),
    ];
  }

  *managed() {
    for (const { key, value } of this.notes.cache.all())
      if (value.ownership.kind === "ours") yield { key, id: value.noteId };
  }

  managedByKey(key: string) {
    const live = this.notes.get(key)?.value;
    return live?.ownership.kind === "ours" ? { key, id: live.noteId } : undefined;
  }

  companionKeys(): Iterable<string> {
    return [];
  }

  plan(key: string, entry: DesiredEntry<NoteSpec> | undefined): Plan {
    if (entry?.want.kind === "delete")
      return { kind: "delete", targets: this.targets(key, entry), authority: "order" };
    if (entry?.want.kind !== "apply") return { kind: "nothing" };
    const { spec } = entry.want;
    const { namespace, name } = spec;
    const manifest = () => desiredNote(spec);
    const object = ownedObject(this.notes, {
      key,
      ref: { namespace, name },
      contentHash: () => this.contentHashes.of(spec, manifest),
      ids: () => ({ id: spec.noteId }),
      manifest,
      judge: ({ ownership, noteId: live }) =>
        judgeIdentity(ownership, { what: "note id", live, wanted: spec.noteId }),
    });
    return {
      kind: "apply",
      steps: [
        { kind: "namespace", name: namespace },
        { kind: "object", object },
      ],
    };
  }

  targets(key: string, _: DesiredEntry<NoteSpec> | undefined): readonly OwnedTarget[] {
    const [namespace = "", name = ""] = key.split("/");
    return [ownedTarget(this.notes, { key, ref: { namespace, name }, judge: ({ ownership }) => ownership })];
  }

  observe(key: string) {
    const text = this.notes.get(key)?.value.text;
    const [, k8sName = ""] = key.split("/");
    const update = { k8sName, text: text ?? "", exists: text !== undefined };
    const change = text === undefined ? "delete" : "update";
    const { report } = this.deps;
    return {
      ...({ change, fingerprint: `${change} ${text}` } as const),
      send: (signal: AbortSignal) => report(update, signal),
    };
  }

  readiness() {
    return { ready: 0, total: 0 };
  }

  failing(): ReadonlyMap<string, string> {
    return new Map();
  }
}

function projectNote({ metadata, data }: ConfigMap, seal: Seal): NoteProjection {
  return {
    ownership: judgeOwnership(seal.read(configMaps, metadata), metadata),
    deleting: metadata?.deletionTimestamp !== undefined,
    createdAt: metadata?.creationTimestamp,
    noteId: metadata?.labels?.[idLabel],
    text: data?.["text"] ?? "",
  };
}

function desiredNote({ namespace, name, noteId, text }: NoteSpec): ConfigMap & KubeObject {
  return withManifestHash<ConfigMap & KubeObject & { metadata: { annotations?: Record<string, string> } }>({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { namespace, name, labels: { [labelKeys.managedBy]: managedBy, [idLabel]: noteId } },
    data: { text },
  });
}
