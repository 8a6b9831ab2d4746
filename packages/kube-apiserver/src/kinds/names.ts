// Checks names, with the real server's rules and messages. Each check returns the reasons why a text is invalid; an
// empty list means that it is valid.

const dnsLabelMax = 63;
const dnsSubdomainMax = 253;
const qualifiedNameMax = 63;
const labelValueMax = 63;

const labelPattern = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const label1035Pattern = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const subdomainPattern = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const qualifiedPattern = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const labelValuePattern = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;
const configKeyPattern = /^[-._a-zA-Z0-9]+$/;
const envNamePattern = /^[ -<>-~]+$/;
const headerPattern = /^[-A-Za-z0-9]+$/;

const labelText =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with " +
  "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const label1035Text =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and " +
  "end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const subdomainText =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end " +
  "with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const qualifiedText =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character " +
  "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const labelValueText =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end " +
  "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is " +
  "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const configKeyText =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or " +
  "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const envNameText =
  "a valid environment variable name must consist only of printable ASCII characters other than '='";
const headerText =
  "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";

export function dnsLabelProblems(text: string): readonly string[] {
  return problems(text, dnsLabelMax, labelPattern, labelText);
}

export function dnsLabel1035Problems(text: string): readonly string[] {
  return problems(text, dnsLabelMax, label1035Pattern, label1035Text);
}

export function dnsSubdomainProblems(text: string): readonly string[] {
  return problems(text, dnsSubdomainMax, subdomainPattern, subdomainText);
}

export function labelValueProblems(text: string): readonly string[] {
  return problems(text, labelValueMax, labelValuePattern, labelValueText, "bytes");
}

/** Keys of labels, annotations and taints: a name with an optional domain prefix. */
export function qualifiedNameProblems(text: string): readonly string[] {
  const parts = text.split("/");
  const [first = "", second] = parts;
  if (parts.length > 2) {
    return [
      `a valid label key ${qualifiedText} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const found: string[] = [];
  const name = second ?? first;
  if (second !== undefined) {
    if (first === "") found.push("prefix part must be non-empty");
    else found.push(...dnsSubdomainProblems(first).map((problem) => `prefix part ${problem}`));
  }
  if (name === "") found.push("name part must be non-empty");
  else if (name.length > qualifiedNameMax)
    found.push(`name part must be no more than ${qualifiedNameMax} bytes`);
  if (!qualifiedPattern.test(name)) found.push(`name part ${qualifiedText}`);
  return found;
}

/** Keys of the data of Secrets and ConfigMaps, which become file names. */
export function configKeyProblems(text: string): readonly string[] {
  const found = [...problems(text, dnsSubdomainMax, configKeyPattern, configKeyText)];
  if (text === ".") found.push("must not be '.'");
  else if (text === "..") found.push("must not be '..'");
  else if (text.startsWith("..")) found.push("must not start with '..'");
  return found;
}

export function envNameProblems(text: string): readonly string[] {
  return envNamePattern.test(text) ? [] : [envNameText];
}

export function httpHeaderProblems(text: string): readonly string[] {
  return headerPattern.test(text) ? [] : [headerText];
}

/** Port names: IANA service names. */
export function portNameProblems(text: string): readonly string[] {
  const found: string[] = [];
  if (text.length > 15) found.push("must be no more than 15 characters");
  if (!/^[-a-z0-9]+$/.test(text))
    found.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  if (!/[a-z]/.test(text)) found.push("must contain at least one letter (a-z)");
  if (text.includes("--")) found.push("must not contain consecutive hyphens");
  if (text.startsWith("-") || text.endsWith("-")) found.push("must not begin or end with a hyphen");
  return found;
}

function problems(
  text: string,
  max: number,
  pattern: RegExp,
  why: string,
  unit: "characters" | "bytes" = "characters",
): readonly string[] {
  const found: string[] = [];
  if (text.length > max) found.push(`must be no more than ${max} ${unit}`);
  if (!pattern.test(text)) found.push(why);
  return found;
}
