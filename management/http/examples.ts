/**
 * Metadata of a body's schema: examples by name, as an OpenAPI media type has them. (zod drops `examples` of a schema
 * that transforms what it is given, since it takes them for examples of the outcome.)
 */
export function examples(byName: Readonly<Record<string, object>>): { 'x-examples': object } {
  const entries = Object.entries(byName).map(([summary, value]) => [camel(summary), { summary, value }]);
  return { 'x-examples': Object.fromEntries(entries) };
}

function camel(text: string): string {
  return text.replace(/\W+(\w)/g, (_, letter: string) => letter.toUpperCase());
}
