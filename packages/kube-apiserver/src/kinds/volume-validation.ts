// Validates volumes with common sources; other sources are not checked.
import type { KeyToPath, Volume, VolumeProjection } from "kubernetes-types/core/v1.js";
import { duplicate, forbiddenField, invalidValue, required } from "../causes.ts";
import type { KubeStatusCause } from "../types.ts";
import { checkLocalPath } from "./container-validation.ts";
import { type Causes, refuse } from "./field-checks.ts";
import { dnsLabelProblems } from "./names.ts";

const tokenSecondsMin = 600;
const tokenSecondsMax = 2 ** 32;

export interface CheckedVolumes {
  readonly causes: Causes;
  /** The names of valid volumes; mounts can refer only to these. */
  readonly sound: ReadonlySet<string>;
}

export function checkVolumes(field: string, volumes: readonly Volume[]): CheckedVolumes {
  const sound = new Set<string>();
  const causes = volumes.flatMap((volume, index) => {
    const at = `${field}[${index}]`;
    const { name = "" } = volume;
    const found: KubeStatusCause[] = [...checkSource(at, volume)];
    if (name === "") found.push(required(`${at}.name`));
    else found.push(...refuse(`${at}.name`, name, dnsLabelProblems(name)));
    if (sound.has(name)) found.push(duplicate(`${at}.name`, name));
    if (found.length === 0) sound.add(name);
    return found;
  });
  return { causes, sound };
}

function checkSource(field: string, volume: Volume): Causes {
  const sources = Object.keys(volume).filter((key) => key !== "name");
  const { secret, configMap, projected, hostPath } = volume;
  const found: KubeStatusCause[] = [];
  if (hostPath !== undefined && (hostPath.path ?? "") === "") found.push(required(`${field}.hostPath.path`));
  if (secret !== undefined && sources[0] === "secret") {
    if ((secret.secretName ?? "") === "") found.push(required(`${field}.secret.secretName`));
    found.push(...checkFiles(`${field}.secret`, secret));
  }
  if (configMap !== undefined) {
    if ((configMap.name ?? "") === "") found.push(required(`${field}.configMap.name`));
    found.push(...checkFiles(`${field}.configMap`, configMap));
  }
  if (projected !== undefined) {
    found.push(...checkMode(`${field}.projected.defaultMode`, projected.defaultMode));
    found.push(
      ...(projected.sources ?? []).flatMap((source, index) =>
        checkProjection(`${field}.projected`, index, source),
      ),
    );
  }
  for (const source of sources.slice(1)) {
    found.push(forbiddenField(`${field}.${source}`, "may not specify more than 1 volume type"));
  }
  return found;
}

function checkFiles(
  field: string,
  { defaultMode, items = [] }: { readonly defaultMode?: number; readonly items?: readonly KeyToPath[] },
): Causes {
  return [
    ...checkMode(`${field}.defaultMode`, defaultMode),
    ...items.flatMap(({ key = "", path = "", mode }, index) => [
      ...(key === "" ? [required(`${field}.items[${index}].key`)] : []),
      ...(path === "" ? [required(`${field}.items[${index}].path`)] : []),
      ...checkLocalPath(`${field}.items[${index}].path`, path),
      ...checkMode(`${field}.items[${index}].mode`, mode),
    ]),
  ];
}

function checkMode(field: string, mode: number | undefined): Causes {
  return mode === undefined || (mode >= 0 && mode <= 0o777)
    ? []
    : [invalidValue(field, mode, "must be a number between 0 and 0777 (octal), both inclusive")];
}

function checkProjection(field: string, index: number, source: VolumeProjection): Causes {
  const at = `${field}.sources[${index}]`;
  const { serviceAccountToken, secret, configMap } = source;
  const found: KubeStatusCause[] = [];
  for (const [kind, reference] of [
    ["secret", secret],
    ["configMap", configMap],
  ] as const) {
    if (reference !== undefined && (reference.name ?? "") === "") found.push(required(`${at}.${kind}.name`));
  }
  if (serviceAccountToken !== undefined) {
    const { expirationSeconds: seconds = tokenSecondsMin, path = "" } = serviceAccountToken;
    const expiry = `${at}.serviceAccountToken.expirationSeconds`;
    if (seconds < tokenSecondsMin)
      found.push(invalidValue(expiry, seconds, "may not specify a duration less than 10 minutes"));
    if (seconds > tokenSecondsMax)
      found.push(invalidValue(expiry, seconds, "may not specify a duration larger than 2^32 seconds"));
    found.push(...(path === "" ? [required(`${field}.path`)] : checkLocalPath(`${field}.path`, path)));
  }
  return found;
}
