// Rules across settings: what is required, what belongs together, what conflicts. A rule applies only when the values
// that it compares are valid, so that one mistake gives one problem.

import { isPrivateHost } from "./insecure-url.ts";
import { type ConfigProblem, problemAt } from "./problem.ts";
import type { Resolution } from "./resolve.ts";
import type { Setting } from "./setting.ts";
import { isSecretSetting, settingChoices, settings } from "./settings.ts";

export interface Verdict {
  readonly problems: readonly ConfigProblem[];
  readonly warnings: readonly ConfigProblem[];
}

export function checkRules(resolution: Resolution): Verdict {
  const { registryUrl, registryUsername, registryPassword, tlsCertFile, tlsKeyFile } = settings;
  const { gatewayNamespace, gatewayName } = settings;
  return {
    problems: [
      ...checkRequired(resolution),
      ...checkPorts(resolution),
      ...checkPlainHttp(resolution, settings.controlUrl, settings.controlAllowInsecure),
      ...checkAllOrNothing(resolution, "registry", [registryUrl, registryUsername, registryPassword]),
      ...checkAllOrNothing(resolution, "tls", [tlsCertFile, tlsKeyFile]),
      ...checkAllOrNothing(resolution, "gateway", [gatewayNamespace, gatewayName]),
    ],
    warnings: [
      ...checkCaFile(resolution, settings.controlUrl, settings.controlCaFile),
      ...checkScrape(resolution),
      ...checkSampleRate(resolution),
    ],
  };
}

/** The rules for a process that only opens a port and writes logs. */
export function checkServerRules(resolution: Resolution): Verdict {
  const { tlsCertFile, tlsKeyFile } = settings;
  return {
    problems: [...checkPorts(resolution), ...checkAllOrNothing(resolution, "tls", [tlsCertFile, tlsKeyFile])],
    warnings: checkSampleRate(resolution),
  };
}

function checkRequired(resolution: Resolution): ConfigProblem[] {
  return settingChoices
    .filter((setting) => setting.required && !resolution.isSet(setting))
    .map((setting) => problemAt(setting.path, resolution.fileOrigin, "is required", waysToSet(setting)));
}

/** A remedy that names the key, the variable and the flag. */
export function waysToSet(setting: Setting<unknown>): string {
  const ways = `set ${setting.path} in the file, ${setting.env} or --${setting.flag}`;
  return isSecretSetting(setting) ? `${ways}, or put it into a file and set ${setting.file.path}` : ways;
}

function checkPorts(resolution: Resolution): ConfigProblem[] {
  const { rpcPort, prometheusPort } = settings;
  if (resolution.value(rpcPort) !== resolution.value(prometheusPort)) return [];
  if (resolution.value(rpcPort) === undefined) return [];
  const written = resolution.isSet(prometheusPort) ? prometheusPort : rpcPort;
  const other = written === prometheusPort ? rpcPort : prometheusPort;
  const message = `is the same port as ${other.path}, ${resolution.value(rpcPort)}`;
  return [problemAt(written.path, resolution.originOf(written), message, "give each its own port")];
}

export function checkPlainHttp(
  resolution: Resolution,
  url: Setting<string>,
  allowInsecure: Setting<boolean>,
): ConfigProblem[] {
  const value = resolution.value(url);
  if (value === undefined || resolution.value(allowInsecure) !== false) return [];
  if (!value.startsWith("http:") || isPrivateHost(new URL(value).hostname)) return [];
  return [
    problemAt(
      url.path,
      resolution.originOf(url),
      "would send the token over plain HTTP to a public host",
      `use https://, or set ${allowInsecure.path} = true`,
    ),
  ];
}

/** Requires that either all settings of a group are set, or none of them. */
export function checkAllOrNothing(
  resolution: Resolution,
  section: string,
  group: readonly Setting<unknown>[],
): ConfigProblem[] {
  const present = group.filter((setting) => resolution.isSet(setting));
  const sectionOrigin = resolution.sectionOrigin(section);
  if (present.length === 0 && sectionOrigin === undefined) return [];
  const origin = sectionOrigin ?? (present[0] && resolution.originOf(present[0]));
  const reason = present.length === 0 ? `[${section}]` : present.map(({ path }) => path).join(" and ");
  return group
    .filter((setting) => !present.includes(setting))
    .map((setting) =>
      problemAt(
        setting.path,
        origin,
        `is missing, but ${reason} ${present.length > 1 ? "are" : "is"} present`,
        `${waysToSet(setting)}; or remove [${section}]`,
      ),
    );
}

export function checkCaFile(
  resolution: Resolution,
  url: Setting<string>,
  caFile: Setting<string>,
): ConfigProblem[] {
  if (!resolution.isSet(caFile) || !resolution.value(url)?.startsWith("http:")) return [];
  const message = `has no effect, because ${url.path} is plain HTTP`;
  return [problemAt(caFile.path, resolution.originOf(caFile), message, "use https://, or remove it")];
}

function checkScrape(resolution: Resolution): ConfigProblem[] {
  const { schedulerScrape, schedulerToken } = settings;
  if (resolution.value(schedulerScrape) !== true || resolution.isSet(schedulerToken)) return [];
  const message = `has no effect: SchedulerService is off without ${schedulerToken.path}`;
  const origin = resolution.originOf(schedulerScrape);
  return [problemAt(schedulerScrape.path, origin, message, waysToSet(schedulerToken))];
}

function checkSampleRate(resolution: Resolution): ConfigProblem[] {
  const { tracingSampleRate, tracingEnabled } = settings;
  if (resolution.value(tracingEnabled) !== false || !resolution.isSet(tracingSampleRate)) return [];
  // No warning when tracing was switched off explicitly.
  if (resolution.isSet(tracingEnabled)) return [];
  const origin = resolution.originOf(tracingSampleRate);
  return [
    problemAt(tracingSampleRate.path, origin, "has no effect: tracing is off", waysToSet(tracingEnabled)),
  ];
}
