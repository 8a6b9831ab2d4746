// What only a control plane or the contexts file knows: names of objects, contexts and regions. Completion scripts ask for it
// with the hidden command complete-words. Shells may expand what it prints, and names come from tenants, so that only words
// of harmless characters are printed.
import type { Command, Option } from "commander";
import { withTimeout } from "../../concurrency/abort.ts";
import { createSystemClock } from "../../concurrency/clock.ts";
import { ObjectKind } from "../../gen/krane/admin/v1/admin_pb.ts";
import { type Admin, type CommandDeps, openAdmin } from "../admin/admin-access.ts";
import { loadContextFile } from "../admin/admin-target.ts";
import { idOf, listApps, nameOf } from "../apps/app-search.ts";
import { listEnvironments } from "../objects/environment-search.ts";
import { isKind, type NamedKind, objectKindOf, parseKind } from "../objects/object-names.ts";
import { nameInCluster } from "../objects/object-rows.ts";
import { listObjects } from "../objects/object-search.ts";
import { runInterruptible } from "../process/interruptible.ts";

/** A person waits for it. */
const timeoutMs = 3_000;
const wordsMax = 500;
const harmless = /^[A-Za-z0-9][A-Za-z0-9._/-]*$/;

/** Flags whose values are looked up, in commands that work with a control plane. */
export const liveFlags: readonly string[] = ["--context", "--region", "--environment"];

type Subject = "object" | "app" | "environment" | "log";

/** The kinds whose names are offered alone. For other commands, the kinds themselves are in the script. */
const aloneKinds: Readonly<Record<Subject, readonly NamedKind[]>> = {
  object: [],
  app: ["app"],
  environment: ["environment"],
  log: ["app", "deployment"],
};

/** Commands whose arguments are looked up. */
export const liveCommands: ReadonlyMap<string, Subject | "context"> = new Map([
  ...["get", "describe", "edit", "scale", "delete", "events", "why"].map(
    (name) => [`krane ${name}`, "object"] as const,
  ),
  ["krane release", "app"],
  ["krane logs", "log"],
  ...["status", "history", "undo", "restart", "pause", "resume"].map(
    (name) => [`krane rollout ${name}`, "app"] as const,
  ),
  ...["set", "unset", "list"].map((name) => [`krane secrets ${name}`, "environment"] as const),
  ["krane context use", "context"],
]);

/** Prints nothing if there is nothing to offer or a call fails: an error message would be completed, too. */
export async function printLiveWords(
  program: Command,
  words: readonly string[],
  deps: CommandDeps,
): Promise<number> {
  const line = readLine(program, words);
  return runInterruptible(deps.io, async (signal) => {
    const work = (limited: AbortSignal) => wordsOf(line, deps, limited);
    const found = await withTimeout(createSystemClock(), timeoutMs, signal, work).catch(() => []);
    const shown = offeredWords(found, line.current);
    deps.io.stdout.write(shown.map((word) => `${word}\n`).join(""));
    return 0;
  });
}

export function offeredWords(found: readonly string[], current: string): readonly string[] {
  const matching = found.filter((word) => word.startsWith(current) && harmless.test(word));
  return [...new Set(matching)].sort().slice(0, wordsMax);
}

interface TypedLine {
  readonly command: Command;
  /** `krane rollout undo`. */
  readonly path: string;
  readonly given: readonly string[];
  /** The flag whose value is being typed. */
  readonly wanted: Option | undefined;
  readonly current: string;
}

/** Sets the flags that were typed before on their command. */
function readLine(program: Command, words: readonly string[]): TypedLine {
  // bash splits --flag=value into three words.
  const typed = words.filter((word) => word !== "=");
  const current = words.at(-1) === "=" ? "" : (typed.pop() ?? "");
  let command = program;
  let path = program.name();
  let wanted: Option | undefined;
  const given: string[] = [];
  for (const word of typed) {
    const below = command.commands.find((each) => each.name() === word);
    if (wanted !== undefined) {
      command.setOptionValue(wanted.attributeName(), word);
      wanted = undefined;
    } else if (word.startsWith("-")) {
      const flag = command.options.find(({ short, long }) => [short, long].includes(word));
      wanted = flag?.required ? flag : undefined;
    } else if (given.length === 0 && below !== undefined) {
      command = below;
      path = `${path} ${word}`;
    } else given.push(word);
  }
  return { command, path, given, wanted, current };
}

async function wordsOf(line: TypedLine, deps: CommandDeps, signal: AbortSignal): Promise<readonly string[]> {
  const { command, path, given, wanted } = line;
  const flag = wanted?.long ?? undefined;
  const subject = liveCommands.get(path);
  if (flag === "--context" || (flag === undefined && subject === "context" && given.length === 0)) {
    const file = await loadContextFile(deps.env, deps.io, signal);
    return [...(file?.contexts.keys() ?? [])];
  }
  if (flag !== undefined && !liveFlags.includes(flag)) return [];
  const admin = await openAdmin(command, deps.env, deps.io, signal);
  try {
    if (flag === "--region") return await regions(admin);
    if (flag === "--environment") return await names(admin, "environment", line);
    if (subject === undefined || subject === "context") return [];
    return await subjectWords(admin, subject, line);
  } finally {
    admin.close();
  }
}

async function regions({ client, signal }: Admin): Promise<readonly string[]> {
  const { agents } = await client.listAgents({ region: "" }, { signal });
  return agents.map(({ region }) => region);
}

/** `NAME`, `KIND NAME` or `KIND/NAME`. */
async function subjectWords(admin: Admin, subject: Subject, line: TypedLine): Promise<readonly string[]> {
  const { given, current } = line;
  const [first = "", ...more] = given;
  if (given.length > 0)
    return more.length > 0 || subject === "environment" ? [] : namesOfWord(admin, first, line);
  const slash = current.indexOf("/");
  const word = current.slice(0, Math.max(0, slash));
  const found = await namesOfWord(admin, word, { ...line, current: current.slice(slash + 1) });
  const alone = await Promise.all(aloneKinds[subject].map((kind) => names(admin, kind, line, isOwn)));
  return [...found.map((name) => `${word}/${name}`), ...alone.flat()];
}

async function namesOfWord(admin: Admin, word: string, line: TypedLine): Promise<readonly string[]> {
  if (/^pods?$/i.test(word))
    return line.path === "krane logs"
      ? podNames(admin)
      : [...(await names(admin, "app", line)), ...(await names(admin, "deployment", line))];
  return isKind(word) ? names(admin, parseKind(word), line) : [];
}

/** A release is found through its app. */
const isOwn = ({ appId }: Named) => appId === "";

async function podNames(admin: Admin): Promise<readonly string[]> {
  const owners = await listObjects(admin, { kind: ObjectKind.DEPLOYMENT });
  return owners.flatMap(({ deployment }) => (deployment?.instances ?? []).map(({ k8sName }) => k8sName));
}

/** Names are easier to read than ids, which are offered where they were begun and where a name would not do. */
async function names(
  admin: Admin,
  kind: NamedKind,
  { path, current }: Pick<TypedLine, "path" | "current">,
  isOffered: (named: Named) => boolean = () => true,
): Promise<readonly string[]> {
  const all = (await namedOf(admin, kind)).filter(isOffered);
  const ids = all.map(({ id }) => id);
  // With --yes, it takes no name alone.
  if (path === "krane delete" || kind === "environment") return ids;
  const short = ({ name }: Named) => name.slice(name.indexOf("/") + 1);
  const times = new Map<string, number>();
  for (const each of all) times.set(short(each), (times.get(short(each)) ?? 0) + 1);
  const shown = all.map((each) => (times.get(short(each)) === 1 ? short(each) : each.name));
  return current === "" ? shown : [...shown, ...all.map(({ name }) => name), ...ids];
}

interface Named {
  readonly id: string;
  /** `namespace/name`. */
  readonly name: string;
  /** The app that it belongs to; empty for none. */
  readonly appId: string;
}

async function namedOf(admin: Admin, kind: NamedKind): Promise<readonly Named[]> {
  if (kind === "environment")
    return (await listEnvironments(admin, admin.region)).map(({ id }) => ({ id, name: id, appId: "" }));
  if (kind === "app")
    return (await listApps(admin, admin.region)).map((view) => ({
      id: idOf(view),
      name: nameOf(view),
      appId: "",
    }));
  const query = { kind: objectKindOf(kind) };
  if (query.kind === ObjectKind.UNSPECIFIED) return [];
  return (await listObjects(admin, query)).map((object) => ({
    id: object.ref?.id ?? "",
    name: nameInCluster(object),
    appId: object.appId,
  }));
}
