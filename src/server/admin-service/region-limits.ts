// Keeps people whose roles are for some regions within those regions: a call names its region, and calls about all regions get what
// they may see.
import type { DescMethod, MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import {
  AdminService,
  type ListAgentsResponseSchema,
  type WatchFleetResponseSchema,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { type Access, includesRegion } from "../oidc/access.ts";
import { callerOf, effectOf } from "./admin-auth.ts";

type Service = ServiceImpl<typeof AdminService>;
type Handler = (request: object, context: HandlerContext) => unknown;

/** Calls about nothing but the caller. */
const aboutTheCaller: ReadonlySet<string> = new Set(["createSession", "getSession", "endSession"]);

export function limitRegions(service: Service): Service {
  const handlers: Readonly<Record<string, unknown>> = { ...service };
  const limited = Object.values<DescMethod>(AdminService.method)
    .filter(({ localName }) => !aboutTheCaller.has(localName))
    .map(({ localName }) => [localName, limit(localName, handlers[localName] as Handler)] as const);
  return {
    ...service,
    ...(Object.fromEntries(limited) as Partial<Service>),
    async listAgents(request, context) {
      const answer = await service.listAgents(request, context);
      const access = callerOf(context.values).access;
      return access === undefined
        ? answer
        : visible(answer as MessageShape<typeof ListAgentsResponseSchema>, "agents", access);
    },
    async *watchFleet(request, context) {
      const access = callerOf(context.values).access;
      for await (const message of service.watchFleet(request, context))
        yield access === undefined
          ? message
          : visible(message as MessageShape<typeof WatchFleetResponseSchema>, "regions", access);
    },
  };
}

/** A message with those entries of a list that are about regions that somebody may see. */
function visible<
  Name extends string,
  T extends { readonly [N in Name]: readonly { readonly region: string }[] },
>(message: T, list: Name, { reads }: Access): T {
  return { ...message, [list]: message[list].filter(({ region }) => includesRegion(reads, region)) };
}

function limit(method: string, handle: Handler): Handler {
  return (request, context) => {
    const { name, access } = callerOf(context.values);
    const region = regionOf(request);
    if (access !== undefined && !includesRegion(access[effectOf(method)], region)) {
      const where = region === "" ? "in all regions" : `in region "${region}"`;
      const message = `the groups of ${name} do not allow ${method} ${where}; ask for a group that does`;
      throw new ConnectError(message, Code.PermissionDenied);
    }
    return handle(request, context);
  };
}

function regionOf(request: object): string {
  const { region, ref } = request as { readonly region?: string; readonly ref?: { readonly region: string } };
  return region ?? ref?.region ?? "";
}
