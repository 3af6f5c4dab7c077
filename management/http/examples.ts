/**
 * Metadata of a body's schema: examples by name, as an OpenAPI media type carries them. (zod drops `examples` from a
 * schema that transforms its input, because it takes them for examples of the output.)
 */
export function examples(byName: Readonly<Record<string, object>>): { 'x-examples': object } {
  const entries = Object.entries(byName).map(([summary, value]) => [camelCase(summary), { summary, value }]);
  return { 'x-examples': Object.fromEntries(entries) };
}

function camelCase(text: string): string {
  return text.replace(/\W+(\w)/g, (_, letter: string) => letter.toUpperCase());
}
