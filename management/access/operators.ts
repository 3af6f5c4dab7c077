import type { FastifyRequest } from 'fastify';
import { callerOf } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { isOperator } from './tenants.ts';

interface Operators {
  readonly superAdmins: readonly string[];
}

/** Throws unless the caller is one of `SUPER_ADMINS`. */
export function demandOperator(settings: Operators, request: FastifyRequest): void {
  if (!isOperator({ settings }, callerOf(request))) {
    throw new ManagementProblem('forbidden', { detail: 'only operators of the instance may do this' });
  }
}
