// Structured logs: one JSON object per line, with a constant message and fields from one list. Every line names the
// instance. Logging never fails its caller: a line that cannot be written is dropped and counted.
import { pino } from "pino";
import type { Clock } from "../concurrency/clock.ts";
import type { Random } from "../concurrency/random.ts";
import { describeError } from "./error-description.ts";
import { isLogFieldName, type LogFields } from "./log-fields.ts";
import { scrub } from "./scrub.ts";

const valueCharsMax = 1024;

export type LogLevel = "debug" | "info" | "warn" | "error";

export interface LogOptions {
  readonly level: LogLevel;
  readonly instance: { readonly id: string; readonly region: string; readonly version: string };
  /** For events only: an event without an error that was not slower than the threshold is kept at this rate. */
  readonly sampling: { readonly rate: number; readonly slowThresholdMs: number };
}

export interface LogDeps {
  /** Takes one line, newline included. May throw. */
  write(line: string): void;
  readonly random: Random;
  readonly clock: Clock;
}

export type EventFields = LogFields & { readonly durationMs: number };

export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /**
   * For something that happens once per request. The line is always kept if the request failed (level error) or was
   * slow, otherwise at the sample rate (level info).
   */
  event(message: string, fields: EventFields): void;
  /** A log that adds these fields to its lines; a line's own field overrides them. */
  child(fields: LogFields): Log;
  /** Lines that could not be written since the start, by this log and its children together. */
  readonly dropped: number;
}

export function createLog(options: LogOptions, deps: LogDeps): Log {
  let dropped = 0;
  const destination = {
    write(line: string) {
      try {
        deps.write(line);
      } catch {
        // A closed standard output or a full disk must not stop reconciling.
        dropped++;
      }
    },
  };
  const { id, region, version } = options.instance;
  const lines = pino(
    {
      level: options.level,
      base: { instance: { id, region, version } },
      // biome-ignore lint/style/noRestrictedGlobals: it formats the time that the clock gave, and reads none itself.
      timestamp: () => `,"time":"${new Date(deps.clock.wallMs()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  );

  function write(level: LogLevel, message: string, bound: LogFields, fields: LogFields | undefined): void {
    if (lines.isLevelEnabled(level)) lines[level](lineOf({ ...bound, ...fields }), message);
  }

  function isKept({ error, durationMs }: EventFields): boolean {
    const { rate, slowThresholdMs } = options.sampling;
    return error !== undefined || durationMs > slowThresholdMs || deps.random.next() < rate;
  }

  // Bound fields are merged here and not by pino, which would write a name twice into the same line.
  function withFields(bound: LogFields): Log {
    return {
      debug: (message, fields) => write("debug", message, bound, fields),
      info: (message, fields) => write("info", message, bound, fields),
      warn: (message, fields) => write("warn", message, bound, fields),
      error: (message, fields) => write("error", message, bound, fields),
      event(message, fields) {
        const level = fields.error === undefined ? "info" : "error";
        if (lines.isLevelEnabled(level) && isKept(fields)) write(level, message, bound, fields);
      },
      child: (fields) => withFields({ ...bound, ...fields }),
      get dropped() {
        return dropped;
      },
    };
  }
  return withFields({});
}

/**
 * The types already allow only listed names and primitives. It is checked again, because a single cast would otherwise be
 * enough to put a whole object into the logs (K7).
 */
function lineOf(fields: LogFields): Record<string, unknown> {
  const line: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    if (name === "error") line["error"] = describeError(value);
    else if (isLogFieldName(name)) line[name] = primitiveOf(value);
  }
  return line;
}

function primitiveOf(value: unknown): string | number | boolean {
  if (typeof value === "string") return scrub(value, valueCharsMax);
  if (typeof value === "boolean") return value;
  if (typeof value === "bigint") return String(value);
  // JSON has no NaN and no infinity; as null they would look like a missing value.
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  return "[not a primitive]";
}

// The warning for a secret file that cannot be read, the same in all parts of krane, so that one search finds them all.

/** Call the result each time a file cannot be read and its last good value stays in use. */
export function secretWarning(log: Log): (error: Error & { readonly setting: string }) => void {
  return (error) =>
    log.warn("cannot reload a secret; its last value stays in use", { setting: error.setting, error });
}
