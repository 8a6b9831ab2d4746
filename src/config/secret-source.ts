// The current value of a secret. One that stands in a file is read again every few
// seconds and after refresh(), so that a rotated token is picked up without a restart.
//
// A file that cannot be read keeps the last good value: during a rotation or a failing
// volume the old token usually still works, and no token certainly does not.

import { ConfigError } from "./error.ts";
import { bad, type Parsed } from "./parsed.ts";
import type { Secret, SecretRef } from "./secret.ts";
import type { SecretType } from "./secret-types.ts";
import { isSecretSetting, settingChoices } from "./settings.ts";

export interface SecretSource {
  /** Rejects with a ConfigError as long as the secret was never read well. */
  current(signal: AbortSignal): Promise<Secret>;
  /** Makes the next current() read the file, as after the token was refused. */
  refresh(): void;
}

export interface SecretSourceDeps {
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
  /** Monotonic milliseconds. */
  nowMs(): number;
  /** Told when a file fails while its last good value stays in use. */
  onFailure?(error: ConfigError): void;
}

type FileRef = Extract<SecretRef, { kind: "file" }>;

const ageMaxMs = 5_000;

/** The kind checks the content of a file; by default it is that of the agent's setting with the name in `ref`. */
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
  readonly #ref: FileRef;
  readonly #deps: SecretSourceDeps;
  readonly #kind: Pick<SecretType, "fromFile">;
  #good: Secret | undefined;
  // Reads are numbered, so that a slow read which began before another one, or before
  // refresh(), cannot put an old value in the place of a newer one.
  #startedReads = 0;
  #newestRead = 0;
  #newestReadAtMs = 0;
  #oldestUsableRead = 1;

  constructor(ref: FileRef, deps: SecretSourceDeps, kind: Pick<SecretType, "fromFile">) {
    this.#ref = ref;
    this.#deps = deps;
    this.#kind = kind;
  }

  refresh(): void {
    this.#oldestUsableRead = this.#startedReads + 1;
  }

  async current(signal: AbortSignal): Promise<Secret> {
    signal.throwIfAborted();
    const fresh =
      this.#newestRead >= this.#oldestUsableRead && this.#deps.nowMs() - this.#newestReadAtMs < ageMaxMs;
    if (this.#good !== undefined && fresh) return this.#good;

    const read = ++this.#startedReads;
    const startedAtMs = this.#deps.nowMs();
    const outcome = await this.#read(signal);
    // Asked to stop is not a failure of the file.
    signal.throwIfAborted();
    const isNewest = read > this.#newestRead;
    if (isNewest) {
      this.#newestRead = read;
      this.#newestReadAtMs = startedAtMs;
    }
    if (outcome instanceof ConfigError) {
      if (this.#good === undefined) throw outcome;
      this.#deps.onFailure?.(outcome);
    } else if (isNewest || this.#good === undefined) {
      this.#good = outcome;
    }
    return this.#good;
  }

  async #read(signal: AbortSignal): Promise<Secret | ConfigError> {
    const { path, setting, shownAs: name = `${setting}_file` } = this.#ref;
    let text: string;
    try {
      text = await this.#deps.readTextFile(path, signal);
    } catch (cause) {
      return new ConfigError("secret_unreadable", name, `${name}: cannot read ${path}`, { cause });
    }
    const parsed = this.#kind.fromFile(text);
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
    : bad("belongs to no secret setting", "check the setting's name");
}
