import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { covers, findGrantFlaw, findHostnameFlaw, grantsCovering, parseHostnames } from "./hostnames.ts";

test("a hostname is a full DNS name in lower case", () => {
  for (const name of ["shop.example.com", "a.b", "xn--bcher-kva.example", "1.example.com", "8.8.8.8a"])
    assert.equal(findHostnameFlaw(name), undefined, name);
  const long = Array.from({ length: 64 }, () => "abc").join(".");
  for (const name of [
    ...[
      "",
      "shop",
      "Shop.example.com",
      "shop.example.com.",
      ".example.com",
      "a..b",
      "10.0.0.1",
      "-a.example.com",
    ],
    ...[
      "a_b.example.com",
      "shop.example.com:80",
      "shop.example.com/x",
      "*.example.com",
      "*",
      "é.example.com",
      long,
    ],
    "shop.example.com\n",
  ])
    assert.match(findHostnameFlaw(name) ?? "", /^must be a full DNS name/, name);
});

test("only a grant may be a wildcard, of one whole label", () => {
  for (const name of ["shop.example.com", "*.example.com"])
    assert.equal(findGrantFlaw(name), undefined, name);
  for (const name of [
    "*",
    "*.com",
    "a.*.example.com",
    "*shop.example.com",
    "**.example.com",
    "*.*.example.com",
  ])
    assert.notEqual(findGrantFlaw(name), undefined, name);
});

test("the grants of a hostname are named from the most specific one on", () => {
  assert.deepEqual(grantsCovering("a.shop.example.com"), [
    "a.shop.example.com",
    "*.shop.example.com",
    "*.example.com",
    "*.com",
  ]);
});

test("a grant covers a name exactly if it is named for it", () => {
  const labels = fc.array(fc.constantFrom("a", "b", "ab"), { minLength: 2, maxLength: 5 });
  const grant = fc
    .tuple(labels, fc.boolean())
    .map(([parts, isWild]) => `${isWild ? "*." : ""}${parts.join(".")}`);
  fc.assert(
    fc.property(labels, grant, (parts, given) => {
      const name = parts.join(".");
      assert.equal(covers(given, name), grantsCovering(name).includes(given));
    }),
  );
});

test("a route has at most 16 hostnames, each once", () => {
  const problems = (names: readonly string[]) => {
    const found: string[] = [];
    parseHostnames("hostnames", names, (path, message) => found.push(`${path} ${message}`));
    return found;
  };
  const many = Array.from({ length: 16 }, (_, index) => `a${index}.example.com`);
  assert.deepEqual(problems(many), []);
  assert.deepEqual(problems([...many, "b.example.com"]), ["hostnames must be at most 16, but are 17"]);
  assert.deepEqual(problems(["a.example.com", "a.example.com"]), [
    'hostnames[1] "a.example.com" is there twice',
  ]);
});
