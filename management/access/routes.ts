import type { FastifyInstance } from 'fastify';
import { isAtLeast, ROLES, type Role } from '../lifecycle/roles.ts';
import { type Access, isPurpose, WEAKEST } from './roles.ts';

/** What a route demands. */
export interface RouteAccess {
  readonly method: string;
  readonly url: string;
  readonly operation: string;
  /** `undefined`: the route doesn't declare it. */
  readonly access: Access | undefined;
  /** Operators may use the route without a role. */
  readonly operators: boolean;
}

/** The callers that the table tells apart: one with each role, and an operator without any. */
export const CALLERS = [...ROLES, 'operator'] as const;
type Caller = (typeof CALLERS)[number];

/** Adds routes registered from now on to `routes`. */
export function collectRoutes(api: FastifyInstance, routes: RouteAccess[]): void {
  api.addHook('onRoute', ({ method, url, config, schema }) => {
    for (const one of [method].flat()) {
      if (one === 'HEAD') continue;
      const operation = schema?.operationId ?? '';
      routes.push({
        ...{ method: one, url, operation },
        access: config?.access,
        operators: config?.operators ?? false,
      });
    }
  });
}

/** Whether the caller may use the route. */
export function isOpenTo({ access, operators }: RouteAccess, caller: Caller): boolean {
  if (access === undefined) return false;
  if (access === 'self') return true;
  if (caller === 'operator') return access === 'operate' || operators;
  return isPurpose(access) && isAtLeast(caller satisfies Role, WEAKEST[access]);
}

/** docs/roles.md: the table role × route. */
export function renderRoles(routes: readonly RouteAccess[]): string {
  const sorted = routes.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
  const rows = sorted.map(
    (route) =>
      `| \`${route.method} ${route.url}\` | ${CALLERS.map((caller) => cell(route, caller)).join(' | ')} |`,
  );
  return `${HEAD}\n\n| route | ${CALLERS.join(' | ')} |\n|---|${'---|'.repeat(CALLERS.length)}\n${rows.join('\n')}\n`;
}

const key = ({ url, method }: RouteAccess): string => `${url} ${method}`;
const cell = (route: RouteAccess, caller: Caller): string =>
  route.access === 'self' ? 'self' : isOpenTo(route, caller) ? 'yes' : '–';

const HEAD = `# Roles

Written by \`npm run generate:roles\` from the routes; a test tries every cell.

A role in an organisation is the same role in each of its clients, and the stronger of two roles counts. A service token
has the role of its scope. The operators (\`SUPER_ADMINS\`) need no role where the last column says yes; elsewhere
their role in the client counts. \`self\`: open to every caller; the answer has only what the caller may see.

The role for some requests depends on what they contain:

- \`POST /server-containers/:id/domains\` with a domain that the container doesn't have yet: admin.
- \`PATCH /server-containers/:id\` with an image: operator.
- A creation, change, clone or revert with resources above the limits of tenants: operator.
- \`POST /clients\` with an organisation: also open to owners and admins of the organisation.
- \`PATCH /clients/:id\` with another organisation: operator.
- Members, invitations and tokens: a caller gives or removes at most the caller's own role.
- \`POST /clients/:id/transfer\`: owner of both clients.`;
