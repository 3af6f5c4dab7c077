import { IttyRouter } from 'itty-router/IttyRouter';
import * as z from 'zod/mini';

const schema = z.object({ version: z.literal(1), name: z.optional(z.string()) });
const router = IttyRouter();
router.all('/', (request) => Response.json(schema.safeParse(request.query)));

/** What the edge's start-up is compared with: its libraries, in a worker that does next to nothing with them. */
export default { fetch: router.fetch };
