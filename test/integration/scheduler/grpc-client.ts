// A gRPC client that shares nothing with krane: its transport is grpc-js, and its messages are made from the
// .proto files by proto-loader, not from the generated code.
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import {
  type CallOptions,
  Client,
  credentials,
  Metadata,
  type MethodDefinition,
  type ServiceDefinition,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

type Message = Readonly<Record<string, unknown>>;

const definitions = loadSync(
  [
    "krane/v1/scheduler.proto",
    "krane/v1/secrets.proto",
    "vault/v1/service.proto",
    "grpc/health/v1/health.proto",
    "grpc/reflection/v1/reflection.proto",
    "grpc/reflection/v1alpha/reflection.proto",
  ],
  {
    includeDirs: [fileURLToPath(new URL("../../../proto", import.meta.url))],
    keepCase: true,
    longs: String,
    enums: String,
    bytes: Buffer,
    oneofs: true,
    defaults: true,
  },
);

export interface GrpcStream {
  /** The next message, "end" after the last one; rejects with the status of a stream that failed. */
  next(): Promise<Message | "end">;
  cancel(): void;
}

export interface GrpcClient {
  call(service: string, method: string, request: Message, options?: CallOptions): Promise<Message>;
  /** Whatever is given is sent, and nothing after it. */
  stream(service: string, method: string, requests: readonly Message[]): GrpcStream;
}

export function grpcClient(t: TestContext, url: string, bearer?: string): GrpcClient {
  const client = new Client(new URL(url).host, credentials.createInsecure());
  t.after(() => client.close());
  const metadata = new Metadata();
  if (bearer !== undefined) metadata.set("authorization", `Bearer ${bearer}`);
  return {
    call(service, method, request, options = {}) {
      const { path, requestSerialize, responseDeserialize } = definitionOf(service, method);
      return new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          path,
          requestSerialize,
          responseDeserialize,
          request,
          metadata,
          options,
          (error, answer) => (error ? reject(error) : resolve(answer ?? {})),
        );
      });
    },
    stream(service, method, requests) {
      const { path, requestSerialize, responseDeserialize, requestStream } = definitionOf(service, method);
      if (requestStream) {
        const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata);
        for (const request of requests) call.write(request);
        call.end();
        return streamOf(call);
      }
      const [request = {}] = requests;
      return streamOf(
        client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request, metadata),
      );
    },
  };
}

function streamOf(call: AsyncIterable<Message> & { cancel(): void }): GrpcStream {
  const messages = call[Symbol.asyncIterator]();
  return {
    async next() {
      const { value, done } = await messages.next();
      return done === true ? "end" : value;
    },
    cancel: () => call.cancel(),
  };
}

function definitionOf(service: string, method: string): MethodDefinition<Message, Message> {
  const methods = definitions[service] as ServiceDefinition | undefined;
  const definition = methods?.[method];
  if (definition === undefined) throw new Error(`the .proto files have no ${service}/${method}`);
  return definition as MethodDefinition<Message, Message>;
}
