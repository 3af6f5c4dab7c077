import * as z from 'zod/mini';

export const config = z.strictObject({ enabled: z._default(z.boolean(), true) });
