// Who may reach a route, in documents.
import type { Format } from "../documents/formats.ts";
import { oneOf, text } from "../documents/formats.ts";
import { ApplyRoute_Expose as Expose } from "../gen/ctrl/v1/route_pb.ts";
import { quote } from "../model/field-problem.ts";

const words = {
  environment: Expose.ENVIRONMENT,
  cluster: Expose.CLUSTER,
  gateway: Expose.GATEWAY,
} as const;
const choices = Object.keys(words) as readonly (keyof typeof words)[];

export const exposeFormat: Format<Expose> = {
  words: `${choices.slice(0, -1).map(code).join(", ")} or ${choices.slice(-1).map(code).join("")}`,
  shape: oneOf(choices).shape,
  read(node, path, refuse) {
    const problems: string[] = [];
    const written = text.read(node, path, (_, message) => problems.push(message));
    const word = choices.find((each) => each === written);
    if (word !== undefined) return words[word];
    const [
      problem = `must be ${choices.slice(0, -1).join(", ")} or ${choices.at(-1)}, but is ${quote(written)}`,
    ] = problems;
    refuse(path, problem);
    return Expose.UNSPECIFIED;
  },
  write: (value) => choices.find((word) => words[word] === value),
};

/** What is exposed under hostnames is exposed by the Gateway. */
export function exposeOf({ expose, hostnames = [] }: Exposed): { readonly expose?: Expose } {
  if (expose !== undefined) return { expose };
  return hostnames.length > 0 ? { expose: Expose.GATEWAY } : {};
}

interface Exposed {
  readonly expose?: Expose | undefined;
  readonly hostnames?: readonly string[] | undefined;
}

function code(word: string): string {
  return `\`${word}\``;
}
