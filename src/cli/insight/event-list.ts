// krane events: lists events, newest last like a log; --follow also shows new ones. After a restart of the control
// plane it reconnects and resumes where it was.
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { createSystemClock, sleep } from "../../concurrency/clock.ts";
import {
  type Event,
  EventSchema,
  ListEventsResponseSchema,
  ObjectKind,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { endless } from "../admin/admin-client.ts";
import { findApp } from "../apps/app-search.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { findEnvironment } from "../objects/environment-search.ts";
import { resolveName } from "../objects/named-object.ts";
import { objectKindOf } from "../objects/object-names.ts";
import { findObject, titleOf } from "../objects/object-search.ts";
import { momentOf } from "../terminal/age.ts";
import type { Paint, Tone } from "../terminal/colours.ts";
import { isPassing, isTaken, reconnectMs } from "../terminal/followed-output.ts";
import { isForPrograms, jsonOf, jsonText, type OutputFormat, renderValue } from "../terminal/output.ts";
import { renderTable } from "../terminal/table.ts";

export interface EventOptions {
  readonly follow?: true;
  readonly limit: number;
}

interface Subject {
  readonly kind: ObjectKind;
  readonly id: string;
}

const titles = ["TIME", "OBJECT", "EVENT", "VERSION", "BY", "OUTCOME"] as const;

const tones: Readonly<Record<string, Tone>> = { troubled: "bad", recovered: "good" };

export async function listEvents(
  admin: Admin,
  io: Io,
  what: { readonly kind: string | undefined; readonly name: string | undefined },
  options: EventOptions,
): Promise<number> {
  const { flaw, ...subject } = await parseSubject(admin, what);
  if (options.follow) return follow(admin, io, subject, options.limit);
  const { client, region, signal, output, paint } = admin;
  const answer = await client.listEvents({ region, ...subject, limit: options.limit }, { signal });
  if (flaw !== undefined && answer.events.length === 0) throw flaw;
  const events = answer.events.toReversed();
  if (isForPrograms(output)) {
    const message = create(ListEventsResponseSchema, { events });
    io.stdout.write(await renderValue(jsonOf(ListEventsResponseSchema, message), output));
    return exitCodes.ok;
  }
  if (events.length === 0) {
    io.stderr.write("no events\n");
    return exitCodes.ok;
  }
  io.stdout.write(renderTable(titles, events.map(cellsOf), paint));
  return exitCodes.ok;
}

async function parseSubject(
  admin: Admin,
  { kind: word, name: id }: { readonly kind: string | undefined; readonly name: string | undefined },
): Promise<Subject & { readonly flaw?: CommandError }> {
  if (word === undefined) return { kind: ObjectKind.UNSPECIFIED, id: "" };
  const { kind: kindName, name } = await resolveName(admin, { first: word, second: id });
  const kind = objectKindOf(kindName);
  if (name === undefined) return { kind, id: "" };
  try {
    if (kindName === "environment") return { kind, id: (await findEnvironment(admin, name)).id };
    if (kindName === "app") return { kind, id: (await findApp(admin, name)).id };
    const { object } = await findObject(admin, name, kind);
    return { kind, id: object.ref?.id ?? name };
  } catch (error) {
    // A removed object still has events under its id.
    if (error instanceof CommandError && error.code === "not_found") return { kind, id: name, flaw: error };
    throw error;
  }
}

async function follow(admin: Admin, io: Io, subject: Subject, backlog: number): Promise<number> {
  const { client, region, signal, output, paint } = admin;
  const clock = createSystemClock();
  let after: bigint | undefined;
  let isSilent = false;
  for (;;) {
    let isAnswered = false;
    try {
      const request = { region, ...subject, ...(after === undefined ? { backlog } : { after }) };
      for await (const { event, position } of client.watchEvents(request, { signal, ...endless })) {
        isSilent = false;
        isAnswered = true;
        after = position;
        // The first message only gives the position where the stream starts.
        if (event === undefined) continue;
        io.stdout.write(await lineOf(event, output, paint));
        if (!(await isTaken(io.stdout, clock, signal))) return exitCodes.ok;
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!isPassing(error)) throw error;
      // The first connection must succeed, so that a mistyped URL is reported.
      if (after === undefined) throw error;
      // The control plane ends every stream after a while; that is not an outage.
      const isOver = isAnswered && error instanceof ConnectError && error.code === Code.DeadlineExceeded;
      if (!isOver) {
        if (!isSilent) io.stderr.write("the control plane does not respond; retrying\n");
        isSilent = true;
      }
    }
    await sleep(clock, reconnectMs, signal);
  }
}

/** Programs get one JSON value per line, or one YAML document per event. */
async function lineOf(event: Event, output: OutputFormat, paint: Paint): Promise<string> {
  if (output === "json") return `${jsonText(jsonOf(EventSchema, event))}\n`;
  if (output === "yaml") return `---\n${await renderValue(jsonOf(EventSchema, event), "yaml")}`;
  const [time, object, what, version, by, outcome] = textsOf(event);
  const start = `${time}  ${object}  ${paint(what, tones[event.event])} (version ${version}, ${by})`;
  return `${outcome === "" ? start : `${start}: ${outcome}`}\n`;
}

function cellsOf(event: Event) {
  const [time, object, what, version, by, outcome] = textsOf(event);
  return [time, object, { text: what, tone: tones[event.event] }, version, by, outcome];
}

function textsOf({ atMs, ref, event, version, by, outcome }: Event) {
  return [
    momentOf(atMs),
    titleOf(ref),
    printable(event),
    `${version}`,
    printable(by),
    printable(outcome),
  ] as const;
}
