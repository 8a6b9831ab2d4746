// The command-line flags that the table of settings implies, for whoever registers them.

import { allSettings } from "./settings.ts";

export interface ConfigFlag {
  /** Without dashes, such as "rpc-port". */
  readonly name: string;
  /** The setting, such as "rpc_port". */
  readonly path: string;
  /** Stands for the value in the help text. */
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
