// An in-process control plane for tests. Its admin sets the desired state of a region and reads the reported state, and
// its faults make it fail.
import { randomBytes } from "node:crypto";
import { regionKey } from "../config/build.ts";
import { Secret } from "../config/secret.ts";
import { type ControlPlane, createControlPlane } from "../control-plane/connection.ts";
import type { Admin } from "../server/admin-service/admin-client.ts";
import { createControlPlaneServer } from "../server/control-plane-server.ts";
import type { Faults } from "../server/faults.ts";
import { createInMemoryControlPlane } from "../server/in-process.ts";
import { fixedSecret } from "./connections.ts";
import { completeAccess, completeHostDeps, type HostDeps } from "./host-deps.ts";

export interface TestControlPlaneOptions {
  /** The region that is registered at the start, for example "local.dev". */
  readonly region: string;
}

export interface TestControlPlane {
  readonly region: string;
  /** The token that agents must send. */
  readonly token: string;
  /** A client of krane.admin.v1.AdminService: says what is wanted, shows what was reported. */
  readonly admin: Admin;
  readonly faults: Faults;
  /** A connection for one controller without a socket; messages are encoded and decoded as on the wire. */
  connect(controller: string): ControlPlane;
  /** Opens a port on 127.0.0.1, for whole agents. */
  serve(port?: number): Promise<{ readonly url: string; close(): Promise<void> }>;
}

export async function createTestControlPlane(
  { region }: TestControlPlaneOptions,
  hostDeps: HostDeps = {},
): Promise<TestControlPlane> {
  const deps = { ...completeHostDeps(hostDeps), ...completeAccess({}) };
  const token = randomBytes(16).toString("hex");
  const plane = createInMemoryControlPlane({ tokens: [new Secret(token)] }, deps);
  await plane.store.registerRegion(region);
  return {
    region,
    token,
    admin: plane.admin,
    faults: plane.faults,
    connect(controller) {
      const place = { controller, baseUrl: "http://in-memory", region: regionKey(region, undefined) };
      return createControlPlane(
        { ...place, token: fixedSecret(token) },
        {
          ...deps,
          createLink: (interceptors) => ({
            transport: plane.createTransport(interceptors),
            generation: 1,
            close: async () => undefined,
          }),
        },
      );
    },
    async serve(port = 0) {
      const place = { port, host: "127.0.0.1" };
      const opened = await createControlPlaneServer(plane, place, deps).start(new AbortController().signal);
      return { url: `http://127.0.0.1:${opened.port}`, close: () => opened.close() };
    },
  };
}
