// Checks the types of fields on the wire before a message is decoded. The protobuf library reads a number where the schema
// has one, whatever was sent: a message of another version of the protocol, whose fields have other numbers, could become
// a spec with wrong values. Unknown fields are skipped as ever.
import {
  type DescField,
  type DescMessage,
  fromBinary,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { Code, ConnectError } from "@connectrpc/connect";

const wireTypes: Readonly<Partial<Record<ScalarType, WireType>>> = {
  [ScalarType.STRING]: WireType.LengthDelimited,
  [ScalarType.BYTES]: WireType.LengthDelimited,
  [ScalarType.DOUBLE]: WireType.Bit64,
  [ScalarType.FIXED64]: WireType.Bit64,
  [ScalarType.SFIXED64]: WireType.Bit64,
  [ScalarType.FLOAT]: WireType.Bit32,
  [ScalarType.FIXED32]: WireType.Bit32,
  [ScalarType.SFIXED32]: WireType.Bit32,
};

function typeOf(field: DescField): WireType {
  if (field.fieldKind === "message" || field.fieldKind === "map") return WireType.LengthDelimited;
  const scalar = field.fieldKind === "enum" ? ScalarType.INT32 : field.scalar;
  // A list of messages has no scalar.
  return scalar === undefined ? WireType.LengthDelimited : (wireTypes[scalar] ?? WireType.Varint);
}

function assertWireTypes(schema: DescMessage, bytes: Uint8Array): void {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    const field = schema.fields.find((known) => known.number === number);
    if (field === undefined) {
      reader.skip(type, number);
      continue;
    }
    // Numbers of a list come one by one or packed.
    const isPacked = field.fieldKind === "list" && type === WireType.LengthDelimited;
    if (type !== typeOf(field) && !isPacked)
      throw new Error(
        `${field} has another type on the wire; does the sender speak another protocol version?`,
      );
    if (field.message === undefined || field.fieldKind === "map") reader.skip(type, number);
    else assertWireTypes(field.message, reader.bytes());
  }
}

/** Throws a ConnectError, as the RPC library does for bytes that it cannot decode. */
export function decode<M extends DescMessage>(schema: M, bytes: Uint8Array): MessageShape<M> {
  try {
    assertWireTypes(schema, bytes);
    return fromBinary(schema, bytes);
  } catch (error) {
    throw new ConnectError(
      `parse binary: ${error instanceof Error ? error.message : String(error)}`,
      Code.Internal,
    );
  }
}
