import type { z } from 'zod';
import type { Applier, Traits } from './contract.ts';

/**
 * How a host makes an applier: the settings that it reads from the environment, and a factory. `Services` are what the
 * factory needs of the host (clients, the clock, ...); a host that lacks one of them doesn't compile.
 */
export interface ApplierFactory<Settings, Services> extends Traits {
  /** The applier's part of the environment. */
  readonly settings: z.ZodObject;
  create(settings: Settings, services: Services): Applier | Promise<Applier>;
}

/** What an applier's folder exports, with the type of its settings. */
export interface Registration<Schema extends z.ZodObject, Services>
  extends ApplierFactory<z.output<Schema>, Services> {
  readonly settings: Schema;
}
