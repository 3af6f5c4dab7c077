/** `tagyard/client`: the client of the management API for other programs. */

export * from './client.ts';
export type * from './generated/management-api.d.ts';
export * from './problem.ts';
