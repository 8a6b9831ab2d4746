// Parses and formats Kubernetes quantities of CPU and memory. Parsing is exact, with integer fractions: in floating point,
// 0.07 cores times 1000 is not 70, and rounding that up would report a limit that nobody set.

// Sign, digits, decimals, and one of three suffixes. "E" alone is exa; "E3" is an exponent.
const quantity =
  /^([+-]?)(?=\.?\d)(\d{0,40})(?:\.(\d{0,40}))?(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d{1,2}))?$/;

const decimalExponents: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};

const binaryExponents: Readonly<Record<string, number>> = { Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 };

const int64Max = 2n ** 63n - 1n;

export function millicores(amount: number): string {
  return `${amount}m`;
}

export function mebibytes(amount: number): string {
  return `${amount}Mi`;
}

/** A CPU quantity in millicores, rounded up as Kubernetes does; 0 if it is missing or invalid. */
export function parseMillicores(text: string | undefined): bigint {
  const amount = parseQuantity(text);
  return amount === undefined ? 0n : clamp(divideUp(amount.numerator * 1000n, amount.denominator));
}

/** A memory quantity in whole MiB, rounded down; 0 if it is missing or invalid. */
export function parseMebibytes(text: string | undefined): bigint {
  const amount = parseQuantity(text);
  return amount === undefined ? 0n : clamp(amount.numerator / (amount.denominator * 2n ** 20n));
}

/**
 * The amount that a person asks for, in millicores; undefined if it is invalid or not a whole number of them, because
 * rounding would silently give another amount than the one written.
 */
export function wholeMillicores(text: string): bigint | undefined {
  return wholeUnits(text, { numerator: 1n, denominator: 1000n });
}

/** The same in MiB. */
export function wholeMebibytes(text: string): bigint | undefined {
  return wholeUnits(text, { numerator: 2n ** 20n, denominator: 1n });
}

function wholeUnits(text: string, unit: Fraction): bigint | undefined {
  const amount = parseQuantity(text);
  if (amount === undefined) return undefined;
  const dividend = amount.numerator * unit.denominator;
  const divisor = amount.denominator * unit.numerator;
  return dividend % divisor === 0n ? clamp(dividend / divisor) : undefined;
}

interface Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

function parseQuantity(text: string | undefined): Fraction | undefined {
  const match = quantity.exec(text ?? "");
  if (match === null) return undefined;
  const [, sign, whole = "", decimals = "", binary = "", decimal = "", exponent = "0"] = match;
  // A negative quantity is invalid here.
  if (sign === "-") return undefined;
  const digits = BigInt(whole + decimals) * 2n ** BigInt(binaryExponents[binary] ?? 0);
  const shift = (decimalExponents[decimal] ?? Number(exponent)) - decimals.length;
  return {
    numerator: digits * 10n ** BigInt(Math.max(shift, 0)),
    denominator: 10n ** BigInt(Math.max(-shift, 0)),
  };
}

function divideUp(numerator: bigint, denominator: bigint): bigint {
  return (numerator + denominator - 1n) / denominator;
}

/** The wire type is int64; a larger value would fail the whole report. */
function clamp(amount: bigint): bigint {
  return amount > int64Max ? int64Max : amount;
}
