import type { FastifyInstance } from 'fastify';
import type { EmulatorContext } from '../api/context.ts';
import type { Points } from '../api/points.ts';
import { formatted } from './sql/answer.ts';
import { parseStatement } from './sql/parser.ts';
import { type Result, runSelect } from './sql/query.ts';
import type { Statement } from './sql/syntax.ts';
import { SqlError } from './sql/tokens.ts';

/** `/accounts/{account_id}/analytics_engine/sql`: a query as the body, and its rows or a text that says what is wrong. */
export function analyticsEndpoints(app: FastifyInstance, { account, now, points }: EmulatorContext): void {
  app.post('/accounts/:account_id/analytics_engine/sql', async (request, reply) => {
    account(request.params);
    const query = Buffer.isBuffer(request.body) ? request.body.toString() : '';
    try {
      const { query: asked, format } = parseStatement(query);
      const { type, text } = formatted(resultOf(asked, points, now()), format);
      return await reply.type(type).send(text);
    } catch (error) {
      if (!(error instanceof SqlError)) throw error;
      return await reply
        .status(422)
        .type('text/plain; charset=utf-8')
        .send(`Input was invalid: ${error.message}`);
    }
  });
}

function resultOf(query: Statement['query'], points: Points, now: Date): Result {
  const listed = (names: readonly string[], type: string): Result => ({
    columns: [{ name: type, type: 'String' }],
    rows: names.map((name) => [name]),
  });
  switch (query) {
    case 'tables':
      return listed(points.datasets(), 'dataset');
    case 'timezones':
    case 'timezone':
      return listed(['Etc/UTC'], 'timezone');
    default:
      return runSelect(query, {
        table: (name) => points.table(name),
        now: Math.floor(now.getTime() / 1_000),
      });
  }
}
