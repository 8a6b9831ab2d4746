// The wire contract as lines of text, from two independent sources: the golden
// table, written by hand, and the descriptors of the generated code. Each line
// stands on its own ("message a.B / 1 name string"), so that comparing the two
// is comparing sets, and a difference names what is wrong.
import {
  type DescEnum,
  type DescField,
  type DescFile,
  type DescMessage,
  type DescMethod,
  ScalarType,
} from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence, MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";

export interface GoldenLine {
  text: string;
  isAddition: boolean;
}

/** Reads a golden table: a heading at the margin, its lines indented, `#` for comments. */
export function parseGoldenTable(text: string): GoldenLine[] {
  const lines: GoldenLine[] = [];
  let heading = "";
  for (const raw of text.split("\n")) {
    const [content = "", comment = ""] = raw.split("#");
    const words = content.trim().split(/\s+/).join(" ");
    if (words === "") continue;
    if (!content.startsWith(" ")) heading = words;
    lines.push({
      text: content.startsWith(" ") ? `${heading} / ${words}` : heading,
      isAddition: comment.trim() === "addition",
    });
  }
  return lines;
}

/** What the descriptors of a package say, in the form of the golden table. */
export function describeFiles(files: DescFile[]): string[] {
  return files.flatMap((file) => [
    ...file.enums.flatMap(describeEnum),
    ...file.messages.flatMap(describeMessage),
    ...file.services.flatMap((service) => [
      `service ${service.typeName}`,
      ...service.methods.map((method) => `service ${service.typeName} / ${describeMethod(method)}`),
    ]),
  ]);
}

function describeEnum(desc: DescEnum): string[] {
  const heading = `enum ${desc.typeName}`;
  return [heading, ...desc.values.map((value) => `${heading} / ${value.number} ${value.name}`)];
}

function describeMessage(desc: DescMessage): string[] {
  const heading = `message ${desc.typeName}`;
  // A descriptor gives the end of a reserved range as the first number behind it.
  const reserved = desc.proto.reservedRange.map(({ start, end }) =>
    end - start === 1 ? `${start}` : `${start}-${end - 1}`,
  );
  return [
    heading,
    ...desc.fields.map((field) => `${heading} / ${describeField(field)}`),
    ...reserved.map((range) => `${heading} / reserved ${range}`),
    ...desc.nestedEnums.flatMap(describeEnum),
    ...desc.nestedMessages.flatMap(describeMessage),
  ];
}

function describeField(field: DescField): string {
  const words = [`${field.number}`, field.name];
  // A message always has presence; for the others it is a choice that readers depend on.
  const isOptional = field.presence === FeatureSet_FieldPresence.EXPLICIT;
  if (isOptional && field.fieldKind !== "message" && field.oneof === undefined) words.push("optional");
  if (field.fieldKind === "list") words.push("repeated");
  words.push(
    field.fieldKind === "map" ? `map<${scalarName(field.mapKey)},${typeName(field)}>` : typeName(field),
  );
  if (field.oneof !== undefined) words.push("in", field.oneof.name);
  return words.join(" ");
}

function typeName(field: DescField): string {
  if (field.message !== undefined) return field.message.typeName;
  if (field.enum !== undefined) return field.enum.typeName;
  return scalarName(field.scalar);
}

function scalarName(scalar: ScalarType): string {
  return ScalarType[scalar].toLowerCase();
}

function describeMethod(method: DescMethod): string {
  const takesStream = method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming";
  const givesStream = method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming";
  const words = [method.name];
  if (takesStream) words.push("stream");
  words.push(method.input.typeName, "->");
  if (givesStream) words.push("stream");
  words.push(method.output.typeName);
  // A method marked free of side effects may be sent as GET, with the request in the URL.
  if (method.idempotency !== MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN) words.push("idempotent");
  return words.join(" ");
}
