// Parses and formats Kubernetes quantities: "500m", "1Gi", "2". Stored objects have them in canonical form, so "1000m"
// becomes "1". Amounts are in billionths, the finest unit of the format; finer ones are rounded up.

export interface Quantity {
  readonly nanos: bigint;
  readonly format: "decimal" | "binary" | "exponent";
}

const decimalExponents = new Map([
  ["n", -9],
  ["u", -6],
  ["m", -3],
  ["", 0],
  ["k", 3],
  ["M", 6],
  ["G", 9],
  ["T", 12],
  ["P", 15],
  ["E", 18],
]);
const binarySuffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const nano = 10n ** 9n;

/** Undefined if the value is not a quantity. */
export function parseQuantity(value: unknown): Quantity | undefined {
  const text = typeof value === "number" ? String(value) : value;
  if (typeof text !== "string") return undefined;
  const match = /^([+-]?)(\d*)(?:\.(\d*))?([eE][+-]?\d+|[KMGTPE]i|[numkMGTPE])?$/.exec(text);
  if (match === null) return undefined;
  const [, sign = "", whole = "", fraction = "", suffix = ""] = match;
  if (whole === "" && fraction === "") return undefined;
  const digits = BigInt(`${whole}${fraction}`);
  const scale = scaleOf(suffix);
  const magnitude = divideUp(digits * scale.times * nano, 10n ** BigInt(fraction.length) * scale.over);
  return { nanos: sign === "-" ? -magnitude : magnitude, format: scale.format };
}

function scaleOf(suffix: string): { times: bigint; over: bigint; format: Quantity["format"] } {
  const binary = suffix === "" ? -1 : binarySuffixes.indexOf(suffix);
  if (binary > 0) return { times: 1024n ** BigInt(binary), over: 1n, format: "binary" };
  const isExponent = /^[eE][+-]?\d/.test(suffix);
  const exponent = isExponent ? Number(suffix.slice(1)) : (decimalExponents.get(suffix) ?? 0);
  const power = 10n ** BigInt(Math.abs(exponent));
  const format = isExponent ? "exponent" : "decimal";
  return exponent < 0 ? { times: 1n, over: power, format } : { times: power, over: 1n, format };
}

function divideUp(amount: bigint, divisor: bigint): bigint {
  return (amount + divisor - 1n) / divisor;
}

export function formatQuantity({ nanos, format }: Quantity): string {
  const sign = nanos < 0n ? "-" : "";
  const size = nanos < 0n ? -nanos : nanos;
  if (size === 0n) return "0";
  // There is no binary suffix for small amounts.
  if (format === "binary" && size >= 1024n * nano) return sign + formatBinary(divideUp(size, nano));
  for (const [suffix, exponent] of [...decimalExponents].reverse()) {
    const unit = 10n ** BigInt(exponent + 9);
    if (size % unit !== 0n) continue;
    const shown = format === "exponent" && exponent !== 0 ? `e${exponent}` : suffix;
    return `${sign}${size / unit}${shown}`;
  }
  return `${sign}${size}n`;
}

function formatBinary(amount: bigint): string {
  let power = 0;
  let rest = amount;
  while (rest % 1024n === 0n && power < binarySuffixes.length - 1) {
    rest /= 1024n;
    power++;
  }
  return `${rest}${binarySuffixes[power]}`;
}

const nanosPerUnit = 1_000_000_000n;

/** Compares two quantities, whatever their suffixes. */
export function compareQuantities(left: string, right: string): number {
  const difference = nanosOf(left) - nanosOf(right);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

export function isWholeQuantity(text: string): boolean {
  return nanosOf(text) % nanosPerUnit === 0n;
}

// Invalid quantities were rejected when the request was decoded.
function nanosOf(text: string): bigint {
  return parseQuantity(text)?.nanos ?? 0n;
}
