// The command-line flags for the settings, derived from the table of settings.

import { allSettings } from "./settings.ts";

export interface ConfigFlag {
  /** Without dashes, for example "rpc-port". */
  readonly name: string;
  /** The setting, for example "rpc_port". */
  readonly path: string;
  /** Placeholder for the value in the help text. */
  readonly placeholder: string;
  readonly description: string;
  /** Whether the flag alone, without a value, means "true". */
  readonly isSwitch: boolean;
}

export const configFlags: readonly ConfigFlag[] = allSettings.map(({ flag, path, kind, about }) => ({
  name: flag,
  path,
  placeholder: kind.placeholder,
  description: about.replaceAll("`", ""),
  isSwitch: kind.label === "boolean",
}));
