// Rules for the vault settings: a remote vault (vault.url) or an embedded one (master keys and one storage). If both are
// set, the remote one is used. An incomplete embedded vault is an error, because it would start without its master keys
// or without its data keys.

import { isLoopbackHost } from "./insecure-url.ts";
import type { ConfigProblem } from "./problem.ts";
import { problemAt } from "./problem.ts";
import type { Resolution } from "./resolve.ts";
import { checkAllOrNothing, checkCaFile, checkPlainHttp, type Verdict, waysToSet } from "./rules.ts";
import type { Setting } from "./setting.ts";
import { settings } from "./settings.ts";

const { vaultUrl, vaultToken, vaultMasterKeys, vaultFilePath, vaultCaFile, vaultAllowInsecure } = settings;

const s3Settings: readonly Setting<unknown>[] = [
  settings.vaultS3Url,
  settings.vaultS3Bucket,
  settings.vaultS3AccessKeyId,
  settings.vaultS3AccessKeySecret,
];
const embeddedSettings: readonly Setting<unknown>[] = [
  vaultMasterKeys,
  ...s3Settings,
  settings.vaultS3Region,
  vaultFilePath,
];

export function checkVault(resolution: Resolution): Verdict {
  return resolution.isSet(vaultUrl)
    ? {
        problems: checkPlainHttp(resolution, vaultUrl, vaultAllowInsecure),
        warnings: [...warnOfRemote(resolution), ...checkCaFile(resolution, vaultUrl, vaultCaFile)],
      }
    : { problems: checkEmbedded(resolution), warnings: warnOfRegion(resolution) };
}

/**
 * What a `krane vault` command does: `call` a remote or embedded vault, work on the `keys` of an embedded one, or `serve`
 * one.
 */
export type VaultUse = "call" | "keys" | "serve";

export function checkVaultUse(resolution: Resolution, use: VaultUse): Verdict {
  const { problems, warnings } = checkVault(resolution);
  const missing = (setting: Setting<unknown>, message: string, remedy: string) =>
    problemAt(setting.path, resolution.originOf(setting) ?? resolution.fileOrigin, message, remedy);
  const more: ConfigProblem[] = [];
  if (use !== "call" && resolution.isSet(vaultUrl))
    more.push(
      missing(
        vaultUrl,
        "points to a remote vault, but this command needs the keys of an embedded one",
        "remove it",
      ),
    );
  else if (problems.length === 0 && !resolution.isSet(vaultUrl) && !resolution.isSet(vaultMasterKeys))
    more.push(
      missing(
        vaultMasterKeys,
        "is required",
        `${waysToSet(vaultMasterKeys)}; and add [vault.file] or [vault.s3]${use === "call" ? `; or set ${vaultUrl.path} to use a remote vault` : ""}`,
      ),
    );
  if (use === "serve" && !resolution.isSet(vaultToken))
    more.push(missing(vaultToken, "is required: callers must send it", waysToSet(vaultToken)));
  if (use === "serve") more.push(...checkOpenPort(resolution));
  return { problems: [...problems, ...more], warnings };
}

/** A token sent over a network in plain text is compromised, and this one opens every keyring. */
function checkOpenPort(resolution: Resolution): ConfigProblem[] {
  const { listenHost, tlsCertFile, tlsKeyFile } = settings;
  const host = resolution.value(listenHost);
  if (host !== undefined && isLoopbackHost(host)) return [];
  if (resolution.isSet(tlsCertFile) || resolution.isSet(tlsKeyFile)) return [];
  if (resolution.value(vaultAllowInsecure) !== false) return [];
  // An invalid address is already a problem.
  if (host === undefined && resolution.isSet(listenHost)) return [];
  const why = "the vault would accept its token over plain HTTP from other machines";
  return [
    problemAt(
      listenHost.path,
      resolution.originOf(listenHost) ?? resolution.fileOrigin,
      host === undefined ? `is not set, so ${why}` : `is not a loopback address: ${why}`,
      `set ${tlsCertFile.path} and ${tlsKeyFile.path}, ${listenHost.path} = "127.0.0.1", or ${vaultAllowInsecure.path} = true`,
    ),
  ];
}

function warnOfRemote(resolution: Resolution): ConfigProblem[] {
  const warnings: ConfigProblem[] = [];
  const ignored = embeddedSettings.filter((setting) => resolution.isSet(setting));
  if (ignored.length > 0) {
    const message = `takes precedence over the embedded vault: ${ignored.map(({ path }) => path).join(", ")} ${ignored.length === 1 ? "is" : "are"} ignored`;
    warnings.push(problemAt(vaultUrl.path, resolution.originOf(vaultUrl), message, "remove one of the two"));
  }
  if (!resolution.isSet(vaultToken)) {
    const message = "is missing: requests to the vault will have no token";
    warnings.push(problemAt(vaultToken.path, resolution.originOf(vaultUrl), message, waysToSet(vaultToken)));
  }
  return warnings;
}

/** A file with [vault.s3] is already checked as a whole, so this finds a region from a variable or a flag. */
function warnOfRegion(resolution: Resolution): ConfigProblem[] {
  const { vaultS3Region } = settings;
  if (!resolution.isSet(vaultS3Region) || s3Settings.some((setting) => resolution.isSet(setting))) return [];
  const origin = resolution.originOf(vaultS3Region);
  return [problemAt(vaultS3Region.path, origin, "has no effect without [vault.s3]", "remove it")];
}

function checkEmbedded(resolution: Resolution): ConfigProblem[] {
  const problems = [
    ...checkAllOrNothing(resolution, "vault.s3", s3Settings),
    ...checkAllOrNothing(resolution, "vault.file", [vaultFilePath]),
  ];
  const s3 = s3Settings.find((setting) => resolution.isSet(setting));
  const file = resolution.isSet(vaultFilePath) ? vaultFilePath : undefined;
  const storage = s3 ?? file;
  const add = (setting: Setting<unknown>, message: string, remedy: string) =>
    problems.push(problemAt(setting.path, resolution.originOf(setting), message, remedy));

  if (file !== undefined && s3 !== undefined) {
    add(file, "is set, and so is [vault.s3]", "remove one of them");
  }
  if (storage !== undefined && !resolution.isSet(vaultMasterKeys)) {
    add(storage, `needs ${vaultMasterKeys.path}`, waysToSet(vaultMasterKeys));
  }
  if (storage === undefined && resolution.isSet(vaultMasterKeys)) {
    add(vaultMasterKeys, "needs storage for the data keys", "add [vault.s3] or [vault.file]");
  }
  if (resolution.isSet(vaultToken) && !resolution.isSet(vaultMasterKeys)) {
    add(vaultToken, `is set, but ${vaultUrl.path} is not`, waysToSet(vaultUrl));
  }
  return problems;
}
