// Who may reach a route, in documents.
import type { Format } from "../documents/formats.ts";
import { oneOf, text } from "../documents/formats.ts";
import { ApplyRoute_Expose as Expose } from "../gen/ctrl/v1/route_pb.ts";
import { quote } from "../model/field-problem.ts";

const words = { environment: Expose.ENVIRONMENT, cluster: Expose.CLUSTER } as const;
const choices = Object.keys(words) as readonly (keyof typeof words)[];

export const exposeFormat: Format<Expose> = {
  words: choices.map((word) => `\`${word}\``).join(" or "),
  shape: oneOf(choices).shape,
  read(node, path, refuse) {
    const problems: string[] = [];
    const written = text.read(node, path, (_, message) => problems.push(message));
    const word = choices.find((each) => each === written);
    if (word !== undefined) return words[word];
    const [problem = `must be ${choices.join(" or ")}, but is ${quote(written)}`] = problems;
    refuse(path, written === "gateway" ? "cannot be gateway: krane makes no HTTPRoutes" : problem);
    return Expose.UNSPECIFIED;
  },
  write: (value) => choices.find((word) => words[word] === value),
};
