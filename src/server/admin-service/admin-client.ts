// A client of the admin API for callers that have the store itself: no socket and no token,
// but the same messages, checks and errors as over the wire.
import { type Client, createClient, createRouterTransport } from "@connectrpc/connect";
import type { Clock } from "../../concurrency/clock.ts";
import { AdminService } from "../../gen/krane/admin/v1/admin_pb.ts";
import { createErrorInterceptor } from "../../services/rpc-errors.ts";
import type { Log } from "../../telemetry/log.ts";
import type { Store } from "../store.ts";
import { explainStoreError } from "../store-errors.ts";
import { createCaller } from "./admin-auth.ts";
import { createAdminService } from "./admin-service.ts";

/** The client of krane.admin.v1.AdminService. */
export type Admin = Client<typeof AdminService>;

/** `by`: the author recorded for changes. */
export function createAdminClient(
  store: Store,
  by: string,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Admin {
  // Its streams end with the clients that opened them.
  const stopping = new AbortController().signal;
  const service = createAdminService({ store, clock, log, stopping });
  const interceptors = [createCaller(by), createErrorInterceptor({ log, explain: explainStoreError })];
  const transport = createRouterTransport(
    (router) => void router.service(AdminService, service, { interceptors }),
  );
  return createClient(AdminService, transport);
}
