// The one error of this folder. Bad configuration is a value (ConfigProblem); this is
// thrown only when a secret's file fails while krane is already running.

export type ConfigErrorCode = "secret_unreadable" | "secret_invalid";

export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly code: ConfigErrorCode;
  /** The setting that names the file, such as "control.token_file". */
  readonly setting: string;

  constructor(code: ConfigErrorCode, setting: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.setting = setting;
  }
}
