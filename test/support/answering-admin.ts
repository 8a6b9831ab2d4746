// The admin of a command, with a control plane that a test plays.
import { Code, type ConnectError, createClient, type Transport } from "@connectrpc/connect";
import type { Admin } from "../../src/cli/admin/admin-access.ts";
import { CommandError } from "../../src/cli/command-error.ts";
import { AdminService } from "../../src/gen/krane/admin/v1/admin_pb.ts";

export function adminOver(transport: Transport, region: string, signal: AbortSignal): Admin {
  return {
    client: createClient(AdminService, transport),
    region,
    target: { region },
    paint: (text: string) => text,
    explain: ({ code, rawMessage }: ConnectError) =>
      new CommandError(code === Code.Unavailable ? "unreachable" : "failed", rawMessage),
    signal,
  } as unknown as Admin;
}
