/** `tagyard/client`: the client of the management API for programs of others. */
export type * from '../generated/management-api.d.ts';
export * from './client.ts';
export * from './problem.ts';
