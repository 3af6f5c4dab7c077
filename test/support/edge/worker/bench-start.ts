import { IttyRouter } from 'itty-router/IttyRouter';
import * as z from 'zod/mini';

const schema = z.object({ version: z.literal(1), name: z.optional(z.string()) });
const router = IttyRouter();
router.all('/', (request) => Response.json(schema.safeParse(request.query)));

/** The baseline for the edge's start-up: a minimal worker with the same libraries. */
export default { fetch: router.fetch };
