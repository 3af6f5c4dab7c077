import { eventStream, exportTexts } from '../http/texts.ts';
import { REQUEST_EXPORTS } from './export.ts';
import { written } from './live-hub.ts';
import type { RequestRow } from './rows/record.ts';

const ROW: RequestRow = {
  id: '0b1f7f5e-6f0e-4f0c-9a52-3a3d0c8f2d11.4',
  time: '2026-11-23T10:00:00.000Z',
  requestId: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
  site: 'acme-shop',
  container: '3f1f2f0e-54a5-4d6b-8f9e-0a1b2c3d4e5f',
  method: 'POST',
  route: '/g/collect',
  status: 204,
  duration: 31,
  cache: null,
  colo: 'FRA',
  country: 'DE',
  bytesIn: 412,
  bytesOut: 0,
  bot: false,
  consent: 'all',
  events: { page_view: 1 },
  webContainerVersion: null,
  signals: null,
  plugins: { server_proxy: 30 },
  counters: { 'bot_guard.marked': 1 },
  error: null,
  cause: null,
  probe: false,
};
const { ndjson, csv } = REQUEST_EXPORTS;

/** Exports of requests. */
export const REQUEST_TEXTS = exportTexts('all rows that match', {
  ndjson: ndjson.line(ROW),
  csv: `${csv.head}${csv.line(ROW)}`,
});

/** Requests as they arrive. */
export const LIVE_TEXTS = eventStream({
  description: '`request` with a row, and `gap` with the number of rows that the reader has missed',
  example: `${written(ROW)}event: gap\ndata: {"missed":12}\n\n`,
});
