// RPC services as routes of an HTTP port: Connect, gRPC and gRPC-Web on the same paths.
// Instead of Connect's own adapter for Node, which prints failures to the console and
// tells its caller nothing of them.
import {
  type ConnectRouter,
  createConnectRouter,
  createContextKey,
  createContextValues,
} from "@connectrpc/connect";
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import type { HttpHandler } from "./http-handler.ts";

/** The IP address that a call came from, for services that judge it; empty within a process. */
export const peerAddress = createContextKey("", { description: "address of the caller" });

/** The handlers by path, for the services that `register` puts into the router. */
export function rpcRoutes(register: (router: ConnectRouter) => void): ReadonlyMap<string, HttpHandler> {
  const router = createConnectRouter({ acceptCompression: [compressionGzip, compressionBrotli] });
  register(router);
  return new Map(router.handlers.map((handler) => [handler.requestPath, nodeHandler(handler)]));
}

function nodeHandler(handler: ConnectRouter["handlers"][number]): HttpHandler {
  return async (request, response) => {
    const context = createContextValues().set(peerAddress, request.socket.remoteAddress ?? "");
    const call = universalRequestFromNodeRequest(request, response, undefined, context);
    try {
      await universalResponseToNodeResponse(await handler(call), response);
    } catch (error) {
      // A client that went away in the middle of an answer is everyday life.
      if (call.signal?.aborted !== true && !response.destroyed) throw error;
    }
  };
}
