import { Session } from 'node:inspector';
import { z } from 'zod';

const described = z.object({
  privateProperties: z
    .array(z.object({ name: z.string(), value: z.object({ objectId: z.string().optional() }).optional() }))
    .default([]),
});

/**
 * The sizes of an object's private Maps, Sets and arrays that aren't empty, by path. Includes those of all objects that
 * it has in private members, also within plain objects. A daemon that keeps entries of things that have ended would
 * fill its memory over the years, and no other test would notice.
 */
export function privateEntries(root: object): Record<string, number> {
  const session = new Session();
  session.connect();
  const sizes: Record<string, number> = {};
  const seen = new Set<unknown>();
  const visit = (path: string, value: unknown) => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return;
    seen.add(value);
    const size = sizeOf(value);
    if (size !== null && size > 0) sizes[path] = size;
    if (size !== null) return;
    const isPlain = Object.getPrototypeOf(value) === Object.prototype;
    const members = isPlain ? Object.entries(value) : privateMembers(session, value);
    for (const [name, member] of members) visit(path === '' ? name : `${path}.${name}`, member);
  };
  try {
    visit('', root);
    return sizes;
  } finally {
    session.disconnect();
  }
}

function sizeOf(value: object): number | null {
  if (value instanceof Map || value instanceof Set) return value.size;
  return Array.isArray(value) ? value.length : null;
}

/** Within one thread, the inspector answers before `post` returns. */
function privateMembers(session: Session, inspected: object): [string, unknown][] {
  const found: unknown[] = [];
  Object.assign(globalThis, { inspected, found });
  try {
    let answer: unknown;
    session.post('Runtime.evaluate', { expression: 'inspected' }, (_, { result: { objectId = '' } }) => {
      session.post('Runtime.getProperties', { objectId, ownProperties: true }, (__, properties) => {
        answer = properties;
      });
    });
    const names: string[] = [];
    for (const { name, value: { objectId } = {} } of described.parse(answer).privateProperties) {
      if (objectId === undefined) continue;
      names.push(name);
      const functionDeclaration = 'function () { found.push(this); }';
      session.post('Runtime.callFunctionOn', { objectId, functionDeclaration });
    }
    return names.map((name, index) => [name, found[index]]);
  } finally {
    Reflect.deleteProperty(globalThis, 'inspected');
    Reflect.deleteProperty(globalThis, 'found');
  }
}
