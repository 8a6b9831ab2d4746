// krane why: explains why an object is not ready. Fetches the facts, lets src/why find the cause, and prints it.
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type AgentView,
  AgentViewSchema,
  ObjectKind,
  type ObjectView,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { kindNames } from "../../kinds/kinds.ts";
import { printable } from "../../telemetry/scrub.ts";
import { explain } from "../../why/explain.ts";
import { explainApp } from "../../why/explain-app.ts";
import type { Cause, Explanation } from "../../why/explanation.ts";
import type { Admin } from "../admin/admin-access.ts";
import { type FoundApp, findApp, nameOf } from "../apps/app-search.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { listEnvironments } from "../objects/environment-search.ts";
import { type NamedKind, nameOfKind, objectKindOf, parseObjectName } from "../objects/object-names.ts";
import { nameInCluster } from "../objects/object-rows.ts";
import { findObject, listObjects, titleOf } from "../objects/object-search.ts";
import type { Paint, Tone } from "../terminal/colours.ts";
import { isForPrograms, renderValue } from "../terminal/output.ts";
import { otherClusters } from "./agent-status.ts";

interface Asked {
  readonly kind: ObjectKind;
  readonly name: string;
}

export async function explainObject(
  admin: Admin,
  io: Io,
  what: { readonly first: string; readonly second: string | undefined },
): Promise<number> {
  const app = await lookForApp(admin, what);
  if (app !== undefined) return explainFoundApp(admin, io, app);
  const asked = parseAsked(what.first, what.second);
  const { client, region, signal } = admin;
  const object = await lookFor(admin, asked);
  // Comes with the server's time, because this machine's clock may be off.
  const { agents, nowMs } = await client.listAgents({ region }, { signal });
  const agent = agents.find((each) => each.region === region) ?? emptyAgent(region);
  if (object === undefined && asked.kind === ObjectKind.UNSPECIFIED)
    await refuseEnvironment(admin, asked.name);
  for (const warning of otherClusters(agent, Number(nowMs))) io.stderr.write(`${warning}\n`);
  const answer = explain({ asked, object, agent }, Number(nowMs));
  const title =
    object === undefined ? `${nameOfKind(asked.kind)}/${printable(asked.name)}` : titleOf(object.ref);
  await print(admin, io, { title, place: object && nameInCluster(object) }, answer);
  return answer.cause === "unknown-object" ? exitCodes.notFound : exitCodes.ok;
}

/** The app that was asked about: `app web`, `app/web`, or a name alone, which may have the form `namespace/name`. */
async function lookForApp(
  admin: Admin,
  { first, second }: { readonly first: string; readonly second: string | undefined },
): Promise<FoundApp | undefined> {
  const [word = ""] = first.split("/");
  if (isKindWord(word, ["app"])) {
    const { name } = parseObjectName(first, second, ["app"]);
    if (name === undefined) throw new CommandError("usage", "which app? krane why app ID");
    return findApp(admin, name);
  }
  if (second !== undefined || isKindWord(word)) return undefined;
  try {
    return await findApp(admin, first);
  } catch (error) {
    const isMissing = error instanceof CommandError && error.code === "not_found";
    // An older control plane has no apps.
    const isOld = error instanceof ConnectError && error.code === Code.Unimplemented;
    if (isMissing || isOld) return undefined;
    throw error;
  }
}

async function explainFoundApp(admin: Admin, io: Io, { id, view, agent }: FoundApp): Promise<number> {
  const { region, signal, client } = admin;
  const { nowMs } = await client.listAgents({ region }, { signal });
  const answer = explainApp(view, agent ?? emptyAgent(region), Number(nowMs));
  await print(admin, io, { title: `app/${printable(id)}`, place: nameOf(view) }, answer);
  return exitCodes.ok;
}

interface Heading {
  readonly title: string;
  /** Its namespace and name. */
  readonly place: string | undefined;
}

async function print(
  { region, output, paint }: Admin,
  io: Io,
  heading: Heading,
  answer: Explanation,
): Promise<void> {
  io.stdout.write(
    isForPrograms(output)
      ? await renderValue(
          { object: heading.title, region, ...answer, differences: [...answer.differences].map(jsonOf) },
          output,
        )
      : answerText(heading, answer, paint),
  );
}

/** `KIND ID`, `KIND/ID`, or a name alone, which may have the form `namespace/name`. */
function parseAsked(first: string, second: string | undefined): Asked {
  const isKind =
    second !== undefined || kindNames.some((kind) => first.startsWith(`${kind}/`)) || isKindWord(first);
  if (!isKind) return { kind: ObjectKind.UNSPECIFIED, name: first };
  const { kind, name } = parseObjectName(first, second, kindNames);
  if (name === undefined) throw new CommandError("usage", `which ${kind}? krane why ${kind} ID`);
  return { kind: objectKindOf(kind), name };
}

function isKindWord(text: string, allowed: readonly NamedKind[] = kindNames): boolean {
  const [word = ""] = text.split("/");
  try {
    parseObjectName(word, undefined, allowed);
    return true;
  } catch {
    return false;
  }
}

/** Includes deleted objects: users often ask about those. */
async function lookFor(admin: Admin, { kind, name }: Asked): Promise<ObjectView | undefined> {
  try {
    return (await findObject(admin, name, kind)).object;
  } catch (error) {
    if (!(error instanceof CommandError && error.code === "not_found")) throw error;
  }
  const all = await listObjects(admin, { kind, includeDeleted: true });
  const matching = all.filter(
    (object) => object.ref?.id === name || object.name === name || nameInCluster(object) === name,
  );
  return matching.length === 1 ? matching[0] : undefined;
}

/** An environment exists, so "unknown object" would be wrong. */
async function refuseEnvironment(admin: Admin, id: string): Promise<void> {
  const environments = await listEnvironments(admin, admin.region);
  if (!environments.some((each) => each.id === id)) return;
  const name = printable(id);
  throw new CommandError(
    "usage",
    `${name} is an environment; no agent manages it, so there is nothing to explain; see krane describe env ${name}`,
  );
}

function emptyAgent(region: string): AgentView {
  return create(AgentViewSchema, { region });
}

const calm: Partial<Record<Cause, Tone>> = {
  "all-well": "good",
  paused: "faint",
  deleted: "faint",
  starting: "busy",
  "surplus-pods": "busy",
  "not-settled": "busy",
  "deletion-in-progress": "busy",
  releasing: "busy",
};

function answerText({ title, place: where }: Heading, answer: Explanation, paint: Paint): string {
  const { cause, summary, desired, applied, live, differences, reason, remedy } = answer;
  const place = where === undefined ? "" : ` (${printable(where)})`;
  const differ = differences.map(({ field, desired, live }) => `${field}: ${desired} wanted, ${live} found`);
  const fields = [
    ["Cause", cause],
    ["Reason", reason],
    ["Desired", desired],
    ["Applied", applied],
    ["Live", live],
    ["Differs", differ.join("; ")],
    ["What to do", remedy],
  ] as const;
  const width = Math.max(...fields.map(([name]) => name.length)) + 1;
  // Never truncated like table cells: the end of a reason often matters most.
  const lines = fields
    .filter(([, text]) => text !== "")
    .map(([name, text]) => `${`${name}:`.padEnd(width)}  ${printable(text)}\n`);
  return `${title}${place}: ${paint(printable(summary), calm[cause] ?? "bad")}\n\n${lines.join("")}`;
}

function jsonOf({ field, desired, live }: Explanation["differences"][number]) {
  return { field, desired, live };
}
