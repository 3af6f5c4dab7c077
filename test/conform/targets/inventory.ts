import { z } from 'zod';

/** What a run makes in a zone and its account. `KINDS` is in the order of removal: each after what uses it. */
interface Kind {
  readonly name: string;
  /** Calls that create, change or delete things of this kind, without the API's prefix. */
  readonly path: RegExp;
  readonly list: (at: Place) => string;
  /** Items a page; unset: the list isn't paged. */
  readonly perPage?: number;
  /** The member with the name that must bear the run's prefix. */
  readonly label: 'name' | 'pattern' | 'title' | 'hostname' | 'id';
  readonly query?: string;
}

interface Place {
  readonly zone: string;
  readonly account: string;
}

const KINDS: readonly Kind[] = [
  {
    name: 'Workers route',
    path: /^\/zones\/\w+\/workers\/routes(\/\w+)?$/,
    list: ({ zone }) => `/zones/${zone}/workers/routes`,
    label: 'pattern',
  },
  {
    name: 'custom domain of a worker',
    path: /^\/accounts\/\w+\/workers\/domains(\/[\w-]+)?$/,
    list: ({ account }) => `/accounts/${account}/workers/domains`,
    label: 'hostname',
  },
  {
    name: 'worker',
    path: /^\/accounts\/\w+\/workers\/scripts\/[\w-]+(\/[\w/-]*)?$/,
    list: ({ account }) => `/accounts/${account}/workers/scripts`,
    label: 'id',
    query: '?force=true',
  },
  {
    name: 'DNS record',
    path: /^\/zones\/\w+\/dns_records(\/\w+)?$/,
    list: ({ zone }) => `/zones/${zone}/dns_records`,
    perPage: 5000,
    label: 'name',
  },
  {
    name: 'KV namespace',
    path: /^\/accounts\/\w+\/storage\/kv\/namespaces(\/.*)?$/,
    list: ({ account }) => `/accounts/${account}/storage/kv/namespaces`,
    perPage: 100,
    label: 'title',
  },
];

/** A call of the API: path and query after its prefix. Rejects where there is no answer. */
type ApiCall = (method: 'GET' | 'DELETE', path: string) => Promise<{ status: number; json: unknown }>;

const item = z.looseObject({ id: z.string() });
type Item = z.infer<typeof item>;
const listing = z.object({
  result: z.array(item).nullable(),
  result_info: z.object({ total_pages: z.number().optional(), total_count: z.number().optional() }).nullish(),
});
const answered = z.object({ result: item });

interface InventoryOptions {
  readonly call: ApiCall;
  readonly place: Place;
  /** Every name that the run may use contains it. */
  readonly prefix: string;
}

/**
 * Knows what was in the account before the run, and what the run has made. Each kind is listed before its first change
 * and at the end, so a thing whose creation was never answered is found too.
 */
export function buildInventory({ call, place, prefix }: InventoryOptions) {
  /** The ids from before the run, of each kind that the run has changed. */
  const before = new Map<Kind, Promise<ReadonlySet<string>>>();
  const made = new Set<string>();

  async function listAll({ list, perPage }: Kind): Promise<Item[]> {
    const items: Item[] = [];
    for (let page = 1; ; page += 1) {
      const query = perPage === undefined ? '' : `?page=${page}&per_page=${perPage}`;
      const { status, json } = await call('GET', `${list(place)}${query}`);
      if (status !== 200) throw new Error(`${list(place)} can't be listed: the answer is ${status}`);
      const { result, result_info: info } = listing.parse(json);
      items.push(...(result ?? []));
      if (perPage === undefined || (result ?? []).length < perPage || page >= (info?.total_pages ?? page)) {
        return items;
      }
    }
  }

  function idsBefore(kind: Kind): Promise<ReadonlySet<string>> {
    const known =
      before.get(kind) ??
      listAll(kind).then((items): ReadonlySet<string> => new Set(items.map(({ id }) => id)));
    before.set(kind, known);
    return known;
  }

  const ours = async (kind: Kind): Promise<Item[]> => {
    const old = await idsBefore(kind);
    return (await listAll(kind)).filter(
      (one) => !old.has(one.id) && (made.has(one.id) || String(one[kind.label]).includes(prefix)),
    );
  };

  return {
    /** Why a call must not be made; `null`: it changes only what is the run's own. */
    async objection(method: string, path: string, body: string): Promise<string | null> {
      if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') return null;
      const kind = KINDS.find(({ path: pattern }) => pattern.test(path));
      if (kind === undefined) return `the run could not undo ${method} ${path}`;
      const names = kind.label === 'id' ? [path] : namesIn(body, kind.label);
      const stray = names.find((name) => !name.includes(prefix));
      if (stray !== undefined) return `${kind.name} ${stray} lacks the run's prefix ${prefix}`;
      const old = await idsBefore(kind);
      const ids = `${path} ${kind.label === 'id' ? '' : body}`.match(/[\w-]+/g) ?? [];
      const foreign = ids.find((id) => old.has(id));
      return foreign === undefined ? null : `${kind.name} ${foreign} was there before the run`;
    },

    /** Remembers what a call has created. */
    created(json: unknown): void {
      const parsed = answered.safeParse(json);
      if (parsed.success) made.add(parsed.data.result.id);
    },

    /** Removes what the run has made, in every kind that it has changed. */
    async removeAll(): Promise<{ removed: number; remains: string[] }> {
      let removed = 0;
      const remains: string[] = [];
      for (const kind of KINDS.filter((one) => before.has(one))) {
        try {
          const found = await ours(kind);
          for (const { id } of found) await call('DELETE', `${kind.list(place)}/${id}${kind.query ?? ''}`);
          const rest = found.length === 0 ? [] : await ours(kind);
          removed += found.length - rest.length;
          remains.push(...rest.map((one) => `${kind.name} ${String(one[kind.label])} (${one.id})`));
        } catch (error) {
          remains.push(
            `perhaps things with the prefix ${prefix} (${kind.name}): ${error instanceof Error ? error.message : String(error)}`,
          );
        }
      }
      return { removed, remains };
    },
  };
}

const body = z.record(z.string(), z.unknown());

/** The names in a request, a DNS batch included. A body that isn't JSON has none. */
function namesIn(text: string, label: string): string[] {
  const parsed = body.safeParse(parseJson(text));
  if (!parsed.success) return [];
  const { posts, puts, patches } = parsed.data;
  const parts = [parsed.data, posts, puts, patches].flat();
  return parts.flatMap((part) => {
    const name = body.safeParse(part).data?.[label];
    return typeof name === 'string' ? [name] : [];
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
