// Checks the certificate files named in the configuration, and when they expire.
import { X509Certificate } from "node:crypto";
import type { Clock } from "../concurrency/clock.ts";
import type { Config } from "../config/config.ts";
import type { Check } from "./checks.ts";
import { type Finding, ok, problem, skipped, warning } from "./finding.ts";

export interface CertificateDeps {
  readonly clock: Clock;
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
}

const dayMs = 86_400_000;
const soonDays = 14;

export function certificateChecks(
  config: Config,
  { clock, readTextFile }: CertificateDeps,
): readonly Check[] {
  const { tls, control, vault } = config;
  const files: readonly (readonly [setting: string, path: string | undefined])[] = [
    ["tls.cert_file", tls?.certFile],
    ["control.ca_file", control.caFile],
    ["vault.ca_file", vault?.kind === "remote" ? vault.caFile : undefined],
  ];
  return files.flatMap(([name, path]) => {
    if (path === undefined) return [];
    const run = async (signal: AbortSignal) => {
      let text: string;
      try {
        text = await readTextFile(path, signal);
      } catch {
        signal.throwIfAborted();
        return [skipped(name, `${path} cannot be read`)];
      }
      return [judgeCertificates(name, text, clock.wallMs())];
    };
    return [{ name, run }];
  });
}

export function judgeCertificates(name: string, pem: string, nowMs: number): Finding {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  const certificates = blocks.flatMap((block) => parse(block) ?? []);
  if (certificates.length === 0 || certificates.length < blocks.length)
    return problem(name, "is not a valid certificate file", "put PEM certificates into the file");
  return judgeValidity(name, certificates, nowMs);
}

/** Judges a chain or bundle by the certificate that expires first. */
export function judgeValidity(
  name: string,
  certificates: readonly Pick<X509Certificate, "validFrom" | "validTo">[],
  nowMs: number,
): Finding {
  const early = certificates.find(({ validFrom }) => timeOf(validFrom) > nowMs);
  if (early !== undefined)
    return problem(name, `is not valid before ${early.validFrom}`, "check this machine's clock");
  const [first] = [...certificates].sort((one, other) => timeOf(one.validTo) - timeOf(other.validTo));
  const { validTo = "" } = first ?? {};
  const remedy = "renew it; krane reloads the file without a restart";
  const leftMs = timeOf(validTo) - nowMs;
  if (leftMs <= 0) return problem(name, `expired on ${validTo}`, remedy);
  const days = Math.floor(leftMs / dayMs);
  if (days < soonDays) return warning(name, `expires in ${days} days, on ${validTo}`, remedy);
  return ok(name, `is valid until ${validTo}`);
}

function timeOf(text: string): number {
  // biome-ignore lint/style/noRestrictedGlobals: it parses a date from a certificate; the current time comes from the clock.
  return Date.parse(text);
}

function parse(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}
