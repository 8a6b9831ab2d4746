// Thrown when a secret's file cannot be read or is invalid. Problems of the configuration itself are values, not errors;
// see ConfigProblem.
import { CodedError } from "../errors/coded-error.ts";
import type { ErrorCode } from "../errors/error-catalogue.ts";

export class ConfigError extends CodedError<"ConfigError"> {
  override readonly name = "ConfigError";
  /** The setting that names the file, for example "control.token_file". */
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
