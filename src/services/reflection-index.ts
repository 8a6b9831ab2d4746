// Indexes the descriptors of the served contract for gRPC reflection: files by name and by the symbols that they define.
// A file is returned with all its imports, so that one request is enough.
import {
  type DescEnum,
  type DescFile,
  type DescMessage,
  type DescService,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";

/** The request of both versions of reflection. */
export type ReflectionRequest =
  | {
      readonly case: "listServices" | "fileByFilename" | "fileContainingSymbol" | "allExtensionNumbersOfType";
      readonly value: string;
    }
  | {
      readonly case: "fileContainingExtension";
      readonly value: { readonly containingType: string; readonly extensionNumber: number };
    }
  | { readonly case: undefined; readonly value?: undefined };

export type ReflectionResponse =
  | { case: "fileDescriptorResponse"; value: { fileDescriptorProto: Uint8Array[] } }
  | {
      case: "allExtensionNumbersResponse";
      value: { baseTypeName: string; extensionNumber: number[] };
    }
  | { case: "listServicesResponse"; value: { service: { name: string }[] } }
  | { case: "errorResponse"; value: { errorCode: number; errorMessage: string } };

export interface ReflectionIndex {
  respond(request: ReflectionRequest): ReflectionResponse;
}

export function createReflectionIndex(services: readonly DescService[]): ReflectionIndex {
  const files = new Map<string, DescFile>();
  for (const { file } of services) for (const one of withImports(file)) files.set(one.proto.name, one);
  const symbols = new Map<string, DescFile>();
  for (const file of files.values()) for (const name of symbolsOf(file)) symbols.set(name, file);
  const service = services.map(({ typeName }) => ({ name: typeName }));
  return {
    respond(request) {
      switch (request.case) {
        case "listServices":
          return { case: "listServicesResponse", value: { service } };
        case "fileByFilename":
          return fileResponse(files.get(request.value));
        case "fileContainingSymbol":
          return fileResponse(symbols.get(request.value));
        case "allExtensionNumbersOfType":
          // No file of the contract extends anything.
          return symbols.has(request.value)
            ? {
                case: "allExtensionNumbersResponse",
                value: { baseTypeName: request.value, extensionNumber: [] },
              }
            : notFound;
        default:
          return notFound;
      }
    },
  };
}

const notFound: ReflectionResponse = {
  case: "errorResponse",
  value: { errorCode: Code.NotFound, errorMessage: "not found on this port" },
};

function fileResponse(file: DescFile | undefined): ReflectionResponse {
  if (file === undefined) return notFound;
  const fileDescriptorProto = withImports(file).map(({ proto }) =>
    toBinary(FileDescriptorProtoSchema, proto),
  );
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

/** Each file once, and before those that it imports. */
function withImports(file: DescFile): readonly DescFile[] {
  const found = new Set<DescFile>();
  const visit = (one: DescFile) => {
    for (const imported of one.dependencies) if (!found.has(imported)) visit(imported);
    found.add(one);
  };
  visit(file);
  return [...found].reverse();
}

/** Every full name that a file defines. Tools look up methods and fields too. */
function* symbolsOf(file: DescFile): Iterable<string> {
  for (const service of file.services) {
    yield service.typeName;
    for (const { name } of service.methods) yield `${service.typeName}.${name}`;
  }
  for (const message of file.messages) yield* symbolsOfMessage(message);
  for (const one of file.enums) yield* symbolsOfEnum(one);
}

function* symbolsOfMessage(message: DescMessage): Iterable<string> {
  yield message.typeName;
  for (const { name } of message.members) yield `${message.typeName}.${name}`;
  for (const nested of message.nestedMessages) yield* symbolsOfMessage(nested);
  for (const nested of message.nestedEnums) yield* symbolsOfEnum(nested);
}

/** Enum values are in the scope of the enum's parent, not of the enum. */
function* symbolsOfEnum({ typeName, values }: DescEnum): Iterable<string> {
  yield typeName;
  const scope = typeName.slice(0, typeName.lastIndexOf(".") + 1);
  for (const { name } of values) yield scope + name;
}
