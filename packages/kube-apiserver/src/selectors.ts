// Parses and evaluates label and field selectors of query parameters.
import { badRequest } from "./status-error.ts";

export type Labels = Readonly<Record<string, unknown>>;
export type LabelMatcher = (labels: Labels) => boolean;

const everything: LabelMatcher = () => true;

/** `a=b,c!=d,e in (f,g),h notin (i),j,!k` */
export function parseLabelSelector(text: string): LabelMatcher {
  const requirements = splitRequirements(text).map(parseRequirement);
  return requirements.length === 0
    ? everything
    : (labels) => requirements.every((matches) => matches(labels));
}

// Commas separate requirements, except between the brackets of a set.
function splitRequirements(text: string): string[] {
  const parts = text.split(/,(?![^(]*\))/).map((part) => part.trim());
  return text.trim() === "" ? [] : parts;
}

function parseRequirement(text: string): LabelMatcher {
  const set = /^(\S+)\s+(in|notin)\s*\(([^)]*)\)$/.exec(text);
  if (set !== null) {
    const [, key = "", operator, list = ""] = set;
    const values = new Set(list.split(",").map((value) => checkValue(value.trim())));
    checkKey(key);
    const isIn = operator === "in";
    return (labels) => (hasLabel(labels, key) ? values.has(String(labels[key])) === isIn : !isIn);
  }
  const equality = /^([^=!\s]+)\s*(==|=|!=)\s*([^=!\s]*)$/.exec(text);
  if (equality !== null) {
    const [, key = "", operator, value = ""] = equality;
    checkKey(key);
    checkValue(value);
    if (operator === "!=") return (labels) => !hasLabel(labels, key) || labels[key] !== value;
    return (labels) => hasLabel(labels, key) && labels[key] === value;
  }
  const comparison = /^([^<>\s]+)\s*([<>])\s*(-?\d+)$/.exec(text);
  if (comparison !== null) {
    const [, key = "", operator, bound = ""] = comparison;
    checkKey(key);
    return (labels) => {
      const value = hasLabel(labels, key) ? Number(labels[key]) : Number.NaN;
      return operator === ">" ? value > Number(bound) : value < Number(bound);
    };
  }
  const absent = /^!\s*(\S+)$/.exec(text);
  const key = checkKey(absent?.[1] ?? text);
  return (labels) => hasLabel(labels, key) === (absent === null);
}

function hasLabel(labels: Labels, key: string): boolean {
  return Object.hasOwn(labels, key);
}

function checkKey(key: string): string {
  if (/^([a-z0-9A-Z]([-a-z0-9.A-Z]*[a-z0-9A-Z])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/.test(key)) {
    return key;
  }
  const stray = /[=!<>(),]/.exec(key)?.[0];
  throw badRequest(
    stray === undefined
      ? `unable to parse requirement: <nil>: Invalid value: ${JSON.stringify(key)}: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`
      : `unable to parse requirement: found '${stray}', expected: identifier`,
  );
}

function checkValue(value: string): string {
  if (value === "" || (value.length <= 63 && /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/.test(value)))
    return value;
  throw badRequest(
    `unable to parse requirement: values[0][]: Invalid value: ${JSON.stringify(value)}: a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
  );
}

export interface FieldRequirement {
  readonly field: string;
  readonly value: string;
  readonly equal: boolean;
}

/** `metadata.name=a,status.phase!=Running` */
export function parseFieldSelector(text: string): readonly FieldRequirement[] {
  const terms = text.split(/(?<!\\),/).filter((term) => term !== "");
  return terms.map((term) => {
    const match = /^([^=!]+)(==|!=|=)(.*)$/s.exec(term);
    if (match === null) throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`);
    const [, field = "", operator, value = ""] = match;
    return { field, value: value.replaceAll(/\\([\\,=])/g, "$1"), equal: operator !== "!=" };
  });
}

/** A selector in an object. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
}

export function matchesLabelSelector(selector: LabelSelector, labels: Labels): boolean {
  const wanted = Object.entries(selector.matchLabels ?? {});
  if (!wanted.every(([key, value]) => hasLabel(labels, key) && labels[key] === value)) return false;
  return (selector.matchExpressions ?? []).every(({ key, operator, values = [] }) => {
    const has = hasLabel(labels, key);
    switch (operator) {
      case "In":
        return has && values.includes(String(labels[key]));
      case "NotIn":
        return !has || !values.includes(String(labels[key]));
      case "Exists":
        return has;
      default:
        return !has;
    }
  });
}

/** The text form of an object's selector, as the scale endpoint shows it. */
export function printLabelSelector(selector: LabelSelector): string {
  const labels = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  const expressions = (selector.matchExpressions ?? []).map(({ key, operator, values = [] }) => {
    if (operator === "Exists") return key;
    if (operator === "DoesNotExist") return `!${key}`;
    return `${key} ${operator.toLowerCase()} (${[...values].sort().join(",")})`;
  });
  return [...labels, ...expressions].sort().join(",");
}
