// How documents write the variables of a deployment: the blob as a mapping from each name to its encrypted value.
import { isCiphertext } from "../../documents/ciphertext.ts";
import { type Bytes, type Format, utf8 } from "../../documents/formats.ts";
import { jsonOf, wordOf } from "../../documents/source-tree.ts";
import { quote } from "../../model/field-problem.ts";
import { readSecretsBlob } from "./secrets-blob.ts";

export const encryptedSecrets: Format<Bytes> = {
  words: "a mapping from the name of a variable to its encrypted value",
  innerPath: ".secrets",
  read(node, path, refuse) {
    if (node.kind !== "map") {
      refuse(path, `must be a mapping, but is ${wordOf(node)}`);
      return utf8("");
    }
    for (const [name, entry] of node.entries) {
      // The plain value in its place would be sent about, and kept, by everybody who must never see it (K7).
      if (entry.node.kind !== "scalar" || !isCiphertext(entry.node.value)) {
        refuse(
          `${path}[${quote(name)}]`,
          "is not what `krane vault encrypt` prints; never put a plain value here",
        );
      }
    }
    return node.entries.size === 0 ? utf8("") : utf8(JSON.stringify({ secrets: jsonOf(node) }));
  },
  write: (value) => Object.fromEntries(readSecretsBlob(value) ?? []),
};
