// Parses and formats durations in Go's format ("1s", "500ms", "1h30m"), which existing configuration files use. Values
// are in milliseconds.

const unitMs: ReadonlyMap<string, number> = new Map([
  ["ns", 1e-6],
  ["us", 1e-3],
  ["µs", 1e-3],
  ["μs", 1e-3],
  ["ms", 1],
  ["s", 1_000],
  ["m", 60_000],
  ["h", 3_600_000],
]);

const textLengthMax = 64;
// The micro sign and the Greek letter. Unescaped, one of them would double the memory that the program's text takes.
const amountAndUnit = String.raw`(\d+(?:\.\d*)?|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)`;
const onePart = new RegExp(amountAndUnit, "g");
const wholeText = new RegExp(`^([+-]?)((?:${amountAndUnit})+)$`);

/** Milliseconds, or undefined when the text is not a duration. */
export function parseDuration(text: string): number | undefined {
  if (text.length > textLengthMax) return undefined;
  if (/^[+-]?0$/.test(text)) return 0;
  const whole = wholeText.exec(text);
  if (whole === null) return undefined;

  let totalMs = 0;
  for (const [, amount, unit] of (whole[2] ?? "").matchAll(onePart)) {
    totalMs += Number(amount) * (unitMs.get(unit ?? "") ?? Number.NaN);
  }
  return whole[1] === "-" ? -totalMs : totalMs;
}

/** The shortest form in whole units: 90 minutes are "1h30m", 1500 ms are "1s500ms". */
export function formatDuration(durationMs: number): string {
  let restMs = durationMs;
  let text = "";
  for (const unit of ["h", "m", "s"]) {
    const factor = unitMs.get(unit) ?? 1;
    const count = Math.floor(restMs / factor);
    if (count > 0) text += `${count}${unit}`;
    restMs -= count * factor;
  }
  if (restMs > 0) text += `${restMs}ms`;
  return text === "" ? "0s" : text;
}
