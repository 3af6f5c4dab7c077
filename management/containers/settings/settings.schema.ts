import { z } from 'zod';
import { givenDomain } from '../../../sites/manifest/schema.ts';
import { containerConfigB64 } from '../../../sites/requests/container.ts';
import { examples } from '../../http/examples.ts';

export const newConfig = z.strictObject({ containerConfigB64 }).meta(
  examples({
    'a configuration': { containerConfigB64: 'aWQ9R1RNLVNSVjAwMDEmZW52PTEmYXV0aD15b3VyLWF1dGg=' },
  }),
);

export const suspension = z
  .strictObject({
    serving: z.boolean().default(true).meta({
      description:
        'true: changes wait, and the site keeps serving as it is; false: the edge answers nothing of the site (403 `serving_off`), and changes are applied',
    }),
  })
  .meta(examples({ 'serving off': { serving: false }, 'changes wait': {} }));

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
