import { Session } from 'node:inspector';
import { z } from 'zod';

const members = z.object({
  privateProperties: z.array(
    z.object({ name: z.string(), value: z.object({ description: z.string().optional() }).optional() }),
  ),
});
const SIZED = /^(?:Map|Set|Array)\((\d+)\)$/;

/**
 * By name, the sizes of an object's private Maps, Sets and arrays that aren't empty. What it still keeps of things that
 * have ended takes memory for years, and can't be seen in any other way.
 */
export function privateEntries(inspected: object): Record<string, number> {
  const session = new Session();
  session.connect();
  Object.assign(globalThis, { inspected });
  try {
    let answer: unknown;
    // Within one thread, each answer comes before `post` returns.
    session.post('Runtime.evaluate', { expression: 'globalThis.inspected' }, (_, { result }) => {
      const asked = { objectId: result.objectId ?? '', ownProperties: true };
      session.post('Runtime.getProperties', asked, (__, found) => {
        answer = found;
      });
    });
    const sizes = members
      .parse(answer)
      .privateProperties.map(
        ({ name, value }) => [name, Number(SIZED.exec(value?.description ?? '')?.[1] ?? 0)] as const,
      );
    return Object.fromEntries(sizes.filter(([, size]) => size > 0));
  } finally {
    Reflect.deleteProperty(globalThis, 'inspected');
    session.disconnect();
  }
}
