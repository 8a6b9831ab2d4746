// A controller's connection to a control plane in the same process.
import type { Clock } from "../../src/concurrency/clock.ts";
import type { Secret } from "../../src/config/secret.ts";
import { type ControlPlane, createControlPlane } from "../../src/control-plane/connection.ts";
import type { Metrics } from "../../src/telemetry/metrics.ts";
import type { TestPlane } from "./store-admin.ts";

export interface PlaneConnectionOptions {
  readonly controller: string;
  /** In its joined form, `local.dev`. */
  readonly region: string;
  readonly token: Secret;
}

export function connectToPlane(
  plane: Pick<TestPlane, "createTransport">,
  { controller, region, token }: PlaneConnectionOptions,
  deps: { readonly clock: Clock; readonly metrics?: Metrics },
): ControlPlane {
  const [name = "", platform = ""] = region.split(".");
  return createControlPlane(
    {
      controller,
      baseUrl: "http://in-memory",
      region: { name, platform, label: region },
      token: { current: async () => token, refresh: () => undefined },
    },
    {
      ...deps,
      createLink: (interceptors) => ({
        transport: plane.createTransport(interceptors),
        generation: 1,
        close: async () => undefined,
      }),
    },
  );
}
