// A custom kind for one case: its own API group, so that cases do not meet, and gone afterwards.
import assert from "node:assert/strict";
import { eventually } from "./eventually.ts";
import { customResourceDefinitions } from "./fixtures.ts";
import { at, type Kind, type Manifest } from "./manifest.ts";
import type { Trial } from "./trial.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The properties of spec, unless `schema` says everything. */
export interface CustomKindOptions {
  readonly spec?: Fields;
  readonly schema?: Fields;
  readonly subresources?: Fields;
  readonly version?: Fields;
}

const openSpec = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

export function customKind(trial: Trial): Kind {
  const group = `${trial.unique("g")}.contract.example`;
  return { group, version: "v1", kind: "Widget", plural: "widgets", namespaced: true };
}

export function definitionOf(kind: Kind, options: CustomKindOptions = {}): Manifest {
  const spec = options.spec === undefined ? openSpec : { type: "object", ...options.spec };
  const status = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  const openAPIV3Schema = options.schema ?? { type: "object", properties: { spec, status } };
  return {
    metadata: { name: `${kind.plural}.${kind.group}` },
    spec: {
      group: kind.group,
      scope: kind.namespaced ? "Namespaced" : "Cluster",
      names: { kind: kind.kind, plural: kind.plural },
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema },
          ...(options.subresources === undefined ? {} : { subresources: options.subresources }),
          ...options.version,
        },
      ],
    },
  };
}

/** Defined, and served to whoever asks. */
export async function defineKind(trial: Trial, options: CustomKindOptions = {}): Promise<Kind> {
  const kind = customKind(trial);
  const definition = definitionOf(kind, options);
  const name = definition.metadata?.name ?? "";
  await trial.create(customResourceDefinitions, definition);
  trial.after(() => trial.delete(customResourceDefinitions, name));
  await established(trial, name);
  // The condition is a promise; the endpoint follows a moment later.
  await eventually(`${name} is served`, async () => {
    await trial.apply(kind, { metadata: { name: "probe" } });
    await trial.delete(kind, "probe");
  });
  return kind;
}

export async function established(trial: Trial, name: string): Promise<Manifest> {
  return eventually(`${name} is established`, async () => {
    const definition = await trial.read(customResourceDefinitions, name);
    const conditions = at(definition, "status.conditions") as readonly Fields[] | undefined;
    const state = (type: string) => conditions?.find((one) => one["type"] === type)?.["status"];
    assert.equal(`${state("NamesAccepted")} ${state("Established")}`, "True True");
    return definition;
  });
}
