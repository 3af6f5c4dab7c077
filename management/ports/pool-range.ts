import { z } from 'zod';

/** `first-last`, both inclusive: the ports of this host's containers, two for each. */
export const portRange = z
  .string()
  .regex(/^\d{4,5}-\d{4,5}$/, 'must be like 20000-20999')
  .transform((text) => {
    const [first = 0, last = 0] = text.split('-').map(Number);
    return { first, last };
  })
  .refine(
    ({ first, last }) => first >= 1024 && last <= 65535 && last > first,
    'must hold at least two ports, all within 1024 to 65535',
  );

export type PortRange = z.output<typeof portRange>;
