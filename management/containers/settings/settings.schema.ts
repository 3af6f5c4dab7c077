import { z } from 'zod';
import { givenDomain } from '../../../gitops/manifest/schema.ts';
import { examples } from '../../http/examples.ts';
import { containerConfigB64 } from '../containers.schema.ts';

export const newConfig = z.strictObject({ containerConfigB64 }).meta(
  examples({
    'a configuration': { containerConfigB64: 'aWQ9R1RNLVNSVjAwMDEmZW52PTEmYXV0aD15b3VyLWF1dGg=' },
  }),
);

export const suspension = z
  .strictObject({
    serving: z
      .literal(
        true,
        'must be true: a suspended site keeps serving; remove the container to end that, and restore it later',
      )
      .default(true)
      .meta({ description: 'a suspended site keeps serving as it is' }),
  })
  .meta(examples({ 'changes wait': {} }));

export const protection = z
  .strictObject({ protect: z.boolean().meta({ description: 'true: the container can’t be removed' }) })
  .meta(examples({ protected: { protect: true }, 'not protected': { protect: false } }));

export const domainOrder = z
  .strictObject({
    domains: z.array(givenDomain).min(1).max(20).meta({
      description: 'all domains of the container; the first one is the primary',
    }),
  })
  .meta(examples({ 'another primary': { domains: ['shop.acme.example', 'acme.example'] } }));
