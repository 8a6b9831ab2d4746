// krane get --watch: prints the list, and then each of its rows again when it changes.
import type { JsonValue } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { createSystemClock, sleep } from "../../concurrency/clock.ts";
import type { WatchFleetResponse } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Admin } from "../admin/admin-access.ts";
import { endless } from "../admin/admin-client.ts";
import { loadAgentHeard } from "../admin/agent-silence.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { isPassing, isTaken, reconnectMs } from "../terminal/followed-output.ts";
import { isForPrograms, jsonText, renderValue } from "../terminal/output.ts";
import { renderTable } from "../terminal/table.ts";
import { renderPath } from "./field-path.ts";
import type { ListedItem, Listing } from "./listing.ts";

/** A release changes many objects at once; they are read together. */
const pauseMs = 500;

/** Columns and fields that grow with time alone. */
const agingColumns: readonly string[] = ["AGE", "REPORTED"];
const agingFields: readonly string[] = ["agentHeardAtMs", "reportedAtMs"];

/** Until it is interrupted, or nobody reads the output any more. */
export async function watchListing(admin: Admin, io: Io, load: () => Promise<Listing>): Promise<number> {
  if (admin.output === "document") throw new CommandError("usage", "--watch does not work with -o document");
  const clock = createSystemClock();
  const { signal } = admin;
  const printer = new ChangePrinter(admin, io);
  for (let isOut = false; ; ) {
    let isAnswered = false;
    try {
      for await (const _ of changesOf(admin)) {
        isAnswered = true;
        isOut = false;
        await printer.print(await load());
        if (!(await isTaken(io.stdout, clock, signal))) return exitCodes.ok;
        await sleep(clock, pauseMs, signal);
      }
    } catch (error) {
      signal.throwIfAborted();
      // The first connection must succeed, so that a mistyped URL is reported.
      if (!printer.hasPrinted || !isPassing(error)) throw error;
      // The control plane ends every stream after a while; that is not an outage.
      const isOver = isAnswered && error instanceof ConnectError && error.code === Code.DeadlineExceeded;
      if (!isOver && !isOut) {
        io.stderr.write("the control plane does not respond; retrying\n");
        isOut = true;
      }
    }
    await sleep(clock, reconnectMs, signal);
  }
}

/** Yields at once, and then whenever something changed in the region or its agent fell silent. Ends with the stream. */
async function* changesOf(admin: Admin): AsyncGenerator<void> {
  const { client, region, signal } = admin;
  const isNews = ({ regions }: WatchFleetResponse) =>
    regions.some((news) => news.region === region && (news.incomplete || news.changed.length > 0));
  let wasSilent: boolean | undefined;
  for await (const message of client.watchFleet({}, { signal, ...endless })) {
    const { isSilent } = await loadAgentHeard(admin);
    if (wasSilent === isSilent && !isNews(message)) continue;
    wasSilent = isSilent;
    yield;
  }
}

class ChangePrinter {
  hasPrinted = false;
  private readonly admin: Admin;
  private readonly io: Io;
  /** What was last printed, by title. */
  private printed: ReadonlyMap<string, string> = new Map();

  constructor(admin: Admin, io: Io) {
    this.admin = admin;
    this.io = io;
  }

  async print(listing: Listing): Promise<void> {
    const { items, titles } = listing;
    const prints = new Map(items.map((item) => [item.title, this.essenceOf(item, titles)]));
    const isChanged = ({ title }: ListedItem) => this.printed.get(title) !== prints.get(title);
    if (items.length === 0 && !this.hasPrinted) this.io.stderr.write(`${listing.absence}\n`);
    const text = await this.render(listing, items.filter(isChanged));
    const gone = [...this.printed.keys()].filter((title) => !prints.has(title));
    this.io.stdout.write(text + gone.map((title) => this.farewell(title)).join(""));
    this.printed = prints;
    this.hasPrinted = true;
  }

  /** What has to differ for a row to be printed again. */
  private essenceOf({ cells, json }: ListedItem, titles: readonly string[]): string {
    if (this.isTable())
      return JSON.stringify(cells.filter((_, column) => !agingColumns.includes(titles[column] ?? "")));
    return JSON.stringify(json, (key, value) => (agingFields.includes(key) ? undefined : value));
  }

  private isTable(): boolean {
    return ["table", "wide", "name"].includes(this.admin.output);
  }

  private async render({ titles, items }: Listing, changed: readonly ListedItem[]): Promise<string> {
    const { output, path, paint } = this.admin;
    if (changed.length === 0) return "";
    if (output === "path")
      return renderPath(
        path,
        changed.map(({ json }) => json),
      );
    if (output === "name") return changed.map(({ title }) => `${title}\n`).join("");
    if (isForPrograms(output))
      return (await Promise.all(changed.map(({ json }) => this.renderOne(json)))).join("");
    // Of the whole table, so that all lines have the same columns.
    const [header, ...lines] = renderTable(
      titles,
      items.map(({ cells }) => cells),
      paint,
    )
      .trimEnd()
      .split("\n");
    const rows = lines.filter((_, index) => changed.includes(items[index] as ListedItem));
    return [...(this.hasPrinted && this.printed.size > 0 ? [] : [header]), ...rows]
      .map((line) => `${line}\n`)
      .join("");
  }

  /** One line of JSON, or one YAML document. */
  private async renderOne(value: JsonValue): Promise<string> {
    if (this.admin.output === "json") return `${jsonText(value)}\n`;
    return `---\n${await renderValue(value, "yaml")}`;
  }

  private farewell(title: string): string {
    if (this.admin.output === "json") return `${jsonText({ gone: title })}\n`;
    if (this.admin.output === "yaml") return `---\ngone: ${title}\n`;
    return this.isTable() ? `${title} is gone\n` : "";
  }
}
