// What a real kube-apiserver 1.36 answered to dry-run creates: defaults where it agreed,
// causes where it did not. Ours must be the same, word for word. General metadata (names,
// labels, owners) is not in here: the request pipeline checks it for all kinds alike.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createThrough, type HookRun } from "../../test/support/kind-hooks.ts";
import answers from "../../testdata/recorded-answers.json" with { type: "json" };
import { DecodeError } from "../decode.ts";
import { builtinResources } from "../served-kinds.ts";
import { StatusError } from "../status-error.ts";
import type { KubeStatusCause } from "../types.ts";

interface Answer {
  readonly resource: string;
  readonly case: string;
  readonly input: unknown;
  readonly object?: unknown;
  readonly causes?: readonly (readonly string[])[];
  readonly message?: string;
}

const stored = [{ kind: "RuntimeClass", metadata: { name: "gvisor" } }];

describe("creating what the real server was asked to create", () => {
  for (const answer of answers as readonly Answer[]) {
    const { resource: name, input } = answer;
    const resource = builtinResources.find(
      ({ kind }) => (kind.group === "" ? kind.plural : `${kind.plural}.${kind.group}`) === name,
    );
    assert.ok(resource !== undefined, name);
    const create = () => createThrough(resource, input, stored);
    if (answer.object !== undefined) {
      it(`gives ${name} the same defaults (${answer.case})`, () => {
        const { object, causes } = create();
        assert.deepEqual(causes, []);
        const { metadata: _metadata, kind: _kind, apiVersion: _version, ...rest } = object;
        assert.deepEqual(withoutChance(rest), withoutChance(answer.object));
      });
    } else if (answer.causes !== undefined) {
      const expected = answer.causes.map((cause) => cause.join(" | ")).sort();
      it(`refuses ${name} for the same causes (${answer.case})`, () => {
        assert.deepEqual(causesOf(create), expected);
      });
    } else {
      it(`refuses ${name} with the same message (${answer.case})`, () => {
        assert.throws(create, (error) => {
          assert.ok(error instanceof StatusError || error instanceof DecodeError);
          // What could not be read gets its first half from the pipeline.
          assert.ok(answer.message?.endsWith(error.message), `${error.message} is not ${answer.message}`);
          return true;
        });
      });
    }
  }
});

/** Sorted: the real server goes through maps in no particular order. */
function causesOf(create: () => HookRun): string[] {
  const text = ({ reason, field, message }: KubeStatusCause) => `${reason} | ${field} | ${message}`;
  try {
    return create().causes.map(text).sort();
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return (error.status.details?.causes ?? []).map(text).sort();
  }
}

/** Addresses and suffixes are drawn at random on both sides. */
function withoutChance(object: unknown): unknown {
  const text = JSON.stringify(object)
    .replaceAll(/kube-api-access-\w+/g, "kube-api-access")
    .replaceAll(/"10\.96\.\d+\.\d+"/g, '"address"')
    .replaceAll(/"nodePort":\d+/g, '"nodePort":0')
    .replaceAll(/"conditions":null/g, '"conditions":[]');
  return JSON.parse(text);
}
