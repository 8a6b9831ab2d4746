// Provides the current value of a secret. A secret in a file is read again when it is older than a few seconds and after
// refresh(), so that a rotated token is picked up without a restart.
//
// While the file is unreadable, the last good value stays in use: during a rotation or a volume failure the old token
// usually still works.

import { ConfigError } from "./error.ts";
import { bad, type Parsed } from "./problem.ts";
import type { Secret, SecretRef } from "./secret.ts";
import type { SecretType } from "./secret-types.ts";
import { isSecretSetting, settingChoices } from "./settings.ts";

export interface SecretSource {
  /** Rejects with a ConfigError until the secret has been read successfully once. */
  current(signal: AbortSignal): Promise<Secret>;
  /** Makes the next current() read the file, for example after the token was rejected. */
  refresh(): void;
}

export interface SecretSourceDeps {
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
  /** Monotonic milliseconds. */
  nowMs(): number;
  /** Called when a file fails and its last good value stays in use. */
  onFailure?(error: ConfigError): void;
}

type FileRef = Extract<SecretRef, { kind: "file" }>;

const ageMaxMs = 5_000;

/** `kind` checks the content of a file. Default: the kind of the agent's setting that `ref` names. */
export function createSecretSource(
  ref: SecretRef,
  deps: SecretSourceDeps,
  kind: Pick<SecretType, "fromFile"> = { fromFile: (text) => parseSecretFile(ref, text) },
): SecretSource {
  if (ref.kind === "file") return new FileSecretSource(ref, deps, kind);
  return {
    async current(signal) {
      signal.throwIfAborted();
      return ref.secret;
    },
    refresh: () => undefined,
  };
}

class FileSecretSource implements SecretSource {
  private readonly ref: FileRef;
  private readonly deps: SecretSourceDeps;
  private readonly kind: Pick<SecretType, "fromFile">;
  private good: Secret | undefined;
  // Reads are numbered, so that a slow read that began before a newer one, or before refresh(), cannot overwrite the
  // newer value.
  private startedReads = 0;
  private newestRead = 0;
  private newestReadAtMs = 0;
  private oldestUsableRead = 1;

  constructor(ref: FileRef, deps: SecretSourceDeps, kind: Pick<SecretType, "fromFile">) {
    this.ref = ref;
    this.deps = deps;
    this.kind = kind;
  }

  refresh(): void {
    this.oldestUsableRead = this.startedReads + 1;
  }

  async current(signal: AbortSignal): Promise<Secret> {
    signal.throwIfAborted();
    const fresh =
      this.newestRead >= this.oldestUsableRead && this.deps.nowMs() - this.newestReadAtMs < ageMaxMs;
    if (this.good !== undefined && fresh) return this.good;

    const read = ++this.startedReads;
    const startedAtMs = this.deps.nowMs();
    const outcome = await this.read(signal);
    // An abort is not a failure of the file.
    signal.throwIfAborted();
    const isNewest = read > this.newestRead;
    if (isNewest) {
      this.newestRead = read;
      this.newestReadAtMs = startedAtMs;
    }
    if (outcome instanceof ConfigError) {
      if (this.good === undefined) throw outcome;
      this.deps.onFailure?.(outcome);
    } else if (isNewest || this.good === undefined) {
      this.good = outcome;
    }
    return this.good;
  }

  private async read(signal: AbortSignal): Promise<Secret | ConfigError> {
    const { path, setting, shownAs: name = `${setting}_file` } = this.ref;
    let text: string;
    try {
      text = await this.deps.readTextFile(path, signal);
    } catch (cause) {
      return new ConfigError("secret_unreadable", name, `${name}: cannot read ${path}`, { cause });
    }
    const parsed = this.kind.fromFile(text);
    return parsed.kind === "ok"
      ? parsed.value
      : new ConfigError(
          "secret_invalid",
          name,
          `${name}: the content of ${path} ${parsed.message}; ${parsed.remedy}`,
        );
  }
}

function parseSecretFile(ref: SecretRef, text: string): Parsed<Secret> {
  const setting = settingChoices.find((each) => ref.kind === "file" && each.path === ref.setting);
  return setting !== undefined && isSecretSetting(setting)
    ? setting.kind.fromFile(text)
    : bad("does not belong to a secret setting", "check the setting's name");
}
