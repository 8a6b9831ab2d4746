// The selectors of `krane get -l`: what objects have in common by their documents.
import { nearestName } from "../../config/nearest-key.ts";
import type { AppView, Environment, ObjectView } from "../../gen/krane/admin/v1/admin_pb.ts";
import { printable } from "../../telemetry/scrub.ts";
import { releasesOf } from "../../why/app-releases.ts";
import { CommandError } from "../command-error.ts";
import { phaseCell } from "./object-rows.ts";

const selectorKeys = ["workspace", "project", "environment", "namespace", "app", "phase"] as const;
type SelectorKey = (typeof selectorKeys)[number];

/** Absent where objects of the kind have no such field. */
export type SelectorFacts = Readonly<Partial<Record<SelectorKey, string>>>;

export type Selector = (facts: SelectorFacts) => boolean;

/** `environment=env_prod,phase!=Ready`: all conditions must hold. A field that an object does not have equals nothing. */
export function parseSelector(text: string): Selector {
  const conditions = text.split(",").map(parseCondition);
  return (facts) => conditions.every((holds) => holds(facts));
}

function parseCondition(text: string): Selector {
  const [, word = "", operator, wanted = ""] = /^\s*([\w-]+)\s*(!=|==?)\s*(.*?)\s*$/s.exec(text) ?? [];
  if (operator === undefined)
    throw new CommandError(
      "usage",
      `selector "${printable(text)}" is neither KEY=VALUE nor KEY!=VALUE; keys are ${selectorKeys.join(", ")}`,
    );
  const key = selectorKeys.find((each) => each === word);
  if (key === undefined) {
    const near = nearestName(
      word,
      selectorKeys.map((name) => ({ name })),
    );
    const hint = near === undefined ? `use ${selectorKeys.join(", ")}` : `did you mean ${near}?`;
    throw new CommandError("usage", `unknown key "${printable(word)}" in the selector; ${hint}`);
  }
  const isSame = (value: string | undefined) =>
    key === "phase" ? value?.toLowerCase() === wanted.toLowerCase() : value === wanted;
  return (facts) => isSame(facts[key]) === (operator !== "!=");
}

export function factsOfObject(object: ObjectView): SelectorFacts {
  const spec = object.spec?.spec;
  const { namespace, appId: app } = object;
  const phase = phaseCell(object).text;
  const owner = spec?.value !== undefined && "environmentId" in spec.value ? ownerFacts(spec.value) : {};
  return { ...owner, namespace, app, phase };
}

export function factsOfApp(view: AppView): SelectorFacts {
  const { template } = view.app?.spec ?? {};
  const { starting, failed, current } = releasesOf(view);
  const settled = current?.deployment === undefined ? "" : phaseCell(current.deployment).text;
  const phase = starting !== undefined ? "Releasing" : failed !== undefined ? "Failed" : settled;
  const owner = template === undefined ? {} : { ...ownerFacts(template), namespace: template.k8sNamespace };
  return { ...owner, app: template?.deploymentId ?? "", phase };
}

export function factsOfEnvironment({ id, workspaceId, projectId }: Environment): SelectorFacts {
  return ownerFacts({ environmentId: id, workspaceId, projectId });
}

function ownerFacts(owner: Record<"workspaceId" | "projectId" | "environmentId", string>): SelectorFacts {
  return { workspace: owner.workspaceId, project: owner.projectId, environment: owner.environmentId };
}
