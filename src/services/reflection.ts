// grpc.reflection: what the services of the port look like, for grpcurl and its like. The file descriptors
// that the code was generated with are the answer, so it cannot differ from what is served. Nobody has to
// show a token: the contract is public.
//
// v1alpha is the same contract under an older name; the answers are made once.
import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { createReflectionIndex, type ReflectionQuestion } from "./reflection-index.ts";

/** Names and numbers; whoever sends more has mistaken the port. */
const requestBytesMax = 4 * 1024;

interface Request {
  readonly host: string;
  readonly messageRequest: ReflectionQuestion;
}

/** Itself included: tools that list services show what they speak. */
export function reflectionRoutes(served: readonly DescService[]): (router: ConnectRouter) => void {
  const index = createReflectionIndex([...served, ServerReflection, ServerReflectionAlpha]);
  const serverReflectionInfo = async function* (requests: AsyncIterable<Request>) {
    for await (const { host, messageRequest } of requests) {
      const originalRequest = { host, messageRequest };
      yield { validHost: host, originalRequest, messageResponse: index.answer(messageRequest) };
    }
  };
  const options = { readMaxBytes: requestBytesMax };
  return (router) => {
    router.service(ServerReflection, { serverReflectionInfo }, options);
    router.service(ServerReflectionAlpha, { serverReflectionInfo }, options);
  };
}
