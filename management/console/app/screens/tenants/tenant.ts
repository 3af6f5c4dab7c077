/** A client or an organisation. */
export interface ShownTenant {
  readonly kind: 'clients' | 'organisations';
  readonly id: string;
}

/** What the pages of clients and organisations say differently. */
export const OF_KIND = {
  clients: { one: 'client', removed: 'This person can no longer read the client’s containers.' },
  organisations: {
    one: 'organisation',
    removed: 'This person can no longer read the containers of the organisation’s clients.',
  },
} as const;
