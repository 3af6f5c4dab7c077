import { z } from 'zod';

export const pluginsQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(64).optional().meta({ description: '`next` of the previous page' }),
});

const plugin = z
  .object({
    name: z.string().meta({ description: 'its options are `modules.<name>`' }),
    title: z.string(),
    description: z.string(),
    kind: z.enum(['always_on', 'default_on', 'optional']).meta({
      description:
        '`always_on`: nothing disables it; `default_on`: its option `enabled` disables it; `optional`: `flag` enables it',
    }),
    flag: z.string().nullable().meta({ description: '`features.<flag>` enables it; null: it has none' }),
    options: z.record(z.string(), z.unknown()).meta({ description: 'JSON Schema (2020-12) of its options' }),
  })
  .meta({ id: 'Plugin' });
export type PluginView = z.output<typeof plugin>;

export const pluginList = z.object({
  items: z.array(plugin),
  next: z.string().nullable().meta({ description: 'pass it as `cursor`; null: this is the last page' }),
});
