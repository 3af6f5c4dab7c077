import type { z } from 'zod';
import type { Applier, Traits } from './contract.ts';

/**
 * How a host creates an applier: its settings from the environment, and a factory. `Services` are what the factory
 * needs from the host (clients, the clock, ...); gitops/host/ compiles only if it provides all of them.
 */
export interface ApplierFactory<Settings, Services> extends Traits {
  /** The applier's part of the environment. */
  readonly settings: z.ZodObject;
  create(settings: Settings, services: Services): Applier | Promise<Applier>;
}

/** What an applier's folder exports: an `ApplierFactory` that keeps the exact type of its settings. */
export interface Registration<Schema extends z.ZodObject, Services>
  extends ApplierFactory<z.output<Schema>, Services> {
  readonly settings: Schema;
}
