// Pairs of metadata, as a user writes them.
import { expect, test } from "vitest";
import { readPairs } from "../../../src/part/filters/metadata.ts";

test.each([
  ["customer=7", '{"customer":7}'],
  ["id=12345678901234567890", '{"id":12345678901234567890}'],
  ['plan="7"', '{"plan":"7"}'],
  [" a = two words , b=true,, ", '{"a":"two words","b":true}'],
  ["url=x?y=z", '{"url":"x?y=z"}'],
  ["empty=", '{"empty":""}'],
  ['list=["a","b"], c=null', '{"list":["a","b"],"c":null}'],
  ['__proto__=1, "=2', '{"__proto__":1,"\\"":2}'],
  ["", "{}"],
])("the pairs %s are the JSON object %s", (text, json) => {
  expect(readPairs(text)).toEqual({ json });
});

test.each([
  ["customer", "key", "customer"],
  ["a=1, =2", "key", "=2"],
  ["a=1, b={x, c=2", "value", "b={x, c=2"],
  ["a=1, a=2", "twice", "a=2"],
])("the pairs %s are refused", (text, kind, pair) => {
  expect(readPairs(text)).toEqual({ problem: { kind, pair } });
});
