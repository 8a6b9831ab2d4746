// The one error of this folder. Bad configuration is a value (ConfigProblem); this is
// thrown only when a secret's file fails while krane is already running.
import { CodedError } from "../errors/coded-error.ts";
import type { ErrorCode } from "../errors/error-catalogue.ts";

export class ConfigError extends CodedError<"ConfigError"> {
  override readonly name = "ConfigError";
  /** The setting that names the file, such as "control.token_file". */
  readonly setting: string;

  constructor(
    code: ErrorCode<"ConfigError">,
    setting: string,
    message: string,
    options?: { readonly cause?: unknown },
  ) {
    super(code, message, options);
    this.setting = setting;
  }
}
