import type { FastifyInstance } from 'fastify';
import type { EmulatorContext } from '../api/context.ts';
import { page, pageOf, success } from '../api/envelope.ts';
import { onlyName, plainPage, selectRecords } from './query.ts';
import { zoneRecords } from './records.ts';

/** `/zones/{zone_id}/dns_records`. */
export function dnsEndpoints(app: FastifyInstance, { db, now, limits, zone }: EmulatorContext): void {
  const records = (params: unknown) => zoneRecords({ db, zone: zone(params), now, limit: limits.records });
  const one = '/zones/:zone_id/dns_records/:dns_record_id';
  type One = { Params: { dns_record_id: string } };

  app.get('/zones/:zone_id/dns_records', ({ params, query }) => {
    const plain = plainPage(query);
    if (plain !== null) {
      const { records: some, total } = records(params).page(plain.number, plain.perPage);
      return pageOf(some, total, plain.number, plain.perPage);
    }
    const name = onlyName(query);
    const some = name === null ? records(params).all() : records(params).named(name);
    const { records: selected, page: number, perPage } = selectRecords(some, query);
    return page(selected, number, perPage);
  });
  app.post('/zones/:zone_id/dns_records', ({ params, body }) => success(records(params).create(body)));
  app.post('/zones/:zone_id/dns_records/batch', ({ params, body }) => success(records(params).batch(body)));
  app.get('/zones/:zone_id/dns_records/usage', ({ params }) =>
    success({ record_quota: limits.records, record_usage: records(params).count() }),
  );
  app.get<One>(one, ({ params }) => success(records(params).get(params.dns_record_id)));
  app.put<One>(one, ({ params, body }) => success(records(params).replace(params.dns_record_id, body)));
  app.patch<One>(one, ({ params, body }) => success(records(params).patch(params.dns_record_id, body)));
  app.delete<One>(one, ({ params }) => success({ id: records(params).remove(params.dns_record_id).id }));
}
