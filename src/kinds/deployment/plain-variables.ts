// Parses the plain variables of a deployment, which its container gets beside those that krane sets itself and the secrets.
import { quote, type Refuse } from "../../model/field-problem.ts";
import { findVariableNameFlaw, readSecretsBlob } from "./secrets-blob.ts";

export interface PlainVariables {
  readonly env: { readonly [name: string]: string };
  /** The blob with the secrets. */
  readonly encryptedEnvironmentVariables: Uint8Array;
}

/** As a container takes it. The published types cannot refer to those of Kubernetes. */
export interface PlainVariable {
  readonly name: string;
  readonly value: string;
}

const field = "env";
const entriesMax = 512;
// Even with every byte escaped, the manifest stays below the limits of the API server and its store, together with the
// largest command and the largest blob. The store also keeps each name a second time, as a managed field.
const bytesMax = 64 * 1024;

const none: readonly PlainVariable[] = [];

/**
 * As the container gets them. Without those that are secrets too: otherwise it would depend on what fetches the secrets
 * which of the two the program gets.
 */
export function parsePlainVariables(message: PlainVariables, refuse: Refuse): readonly PlainVariable[] {
  // By name: the order in a message is not defined, and another order would be another manifest.
  const names = Object.keys(message.env).sort();
  if (names.length === 0) return none;
  if (names.length > entriesMax) {
    refuse(field, `has ${names.length} variables, more than ${entriesMax}`);
    return none;
  }
  const bytes = names.reduce((sum, name) => sum + Buffer.byteLength(name + message.env[name]), 0);
  if (bytes > bytesMax) refuse(field, `has ${bytes} bytes, more than ${bytesMax}`);
  const secrets = readSecretsBlob(message.encryptedEnvironmentVariables);
  return names.flatMap((name) => {
    const value = message.env[name] ?? "";
    const flaw = findFlaw(name, value);
    if (flaw !== undefined) refuse(`${field}[${quote(name)}]`, flaw);
    return secrets?.has(name) ? [] : [{ name, value: withoutReferences(value) }];
  });
}

function findFlaw(name: string, value: string): string | undefined {
  // Kubernetes does not accept names that could lead out of a folder.
  if (name === "." || name.startsWith("..")) return "cannot be the name of a variable";
  // A variable cannot hold a NUL, and Kubernetes would replace an unpaired surrogate.
  if (/\0|\p{Surrogate}/u.test(value)) return "has a NUL character or is not valid Unicode";
  return findVariableNameFlaw(name);
}

/** Kubernetes would replace $(NAME) in a value by another variable, and $$ by $. The program gets what was written. */
function withoutReferences(value: string): string {
  return value.replaceAll("$", "$$$$");
}
