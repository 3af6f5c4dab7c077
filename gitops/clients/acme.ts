import { setTimeout as wait } from 'node:timers/promises';
import type { Authorization, Client, Order } from 'acme-client';
import { z } from 'zod';
import { AcmeError, readProblem } from './acme-errors.ts';
import { acmeLibrary } from './acme-http.ts';

const FIRST_POLL_MS = 250;
const LONGEST_POLL_MS = 5_000;
/** The maximum duration of one order, in milliseconds. Authorities validate from several places; some pause first. */
const ORDER_MS = 120_000;

interface AcmeSettings {
  readonly directoryUrl: string;
  /** PEM of a CA for the authority's own HTTPS, besides those that Node trusts. */
  readonly ca?: string;
  /** PEM of the account's private key. */
  readonly accountKey: string;
  /** The account's address at the authority; `null`: not registered yet. */
  readonly accountUrl: string | null;
  readonly email?: string;
  /** External account binding; `null`: none. */
  readonly binding?: { readonly kid: string; readonly hmacKey: string } | null;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  /** Called with the account's address once it is registered. */
  readonly onAccount: (url: string) => Promise<void>;
}

const directorySchema = z.object({
  meta: z
    .object({ caaIdentities: z.array(z.string().toLowerCase()).default([]) })
    .default({ caaIdentities: [] }),
});

/** A certificate with the chain behind it, and its private key, both PEM. */
export interface Issued {
  readonly chain: string;
  readonly key: string;
}

export interface Acme {
  /**
   * Orders a certificate for one name. Something must answer its http-01 challenges already. Calls `onOrder` right
   * before it creates the order: an earlier failure doesn't count as an order. Throws `AcmeError`.
   */
  issue(host: string, signal: AbortSignal, onOrder: () => void): Promise<Issued>;
  /** Its domains in CAA records; empty if it doesn't say. Throws `AcmeError`. */
  caaIdentities(): Promise<readonly string[]>;
}

/**
 * An account at a certificate authority (RFC 8555). The first order registers the account. An order registers it again
 * if the authority no longer has it.
 */
export function acmeAccount(settings: AcmeSettings): Acme {
  let { accountUrl } = settings;
  let registering: Promise<string> | undefined;

  async function client(): Promise<Client> {
    if (accountUrl === null) {
      registering ??= register(settings).finally(() => {
        registering = undefined;
      });
      accountUrl = await registering;
    }
    return await open(settings, accountUrl);
  }

  return {
    async issue(host, signal, onOrder) {
      const order = async () => await issue(await client(), settings, { host, signal, onOrder });
      try {
        return await order();
      } catch (error) {
        if (!(error instanceof AcmeError) || error.type !== 'accountDoesNotExist') throw error;
        accountUrl = null;
        return await order();
      }
    },
    async caaIdentities() {
      const { axios } = await acmeLibrary(settings);
      const { data } = await axios.get<unknown>(settings.directoryUrl);
      return directorySchema.parse(data).meta.caaIdentities;
    },
  };
}

async function open(settings: AcmeSettings, accountUrl: string | null): Promise<Client> {
  const { directoryUrl, accountKey, binding } = settings;
  const { Client } = await acmeLibrary(settings);
  return new Client({
    directoryUrl,
    accountKey,
    ...(accountUrl === null ? {} : { accountUrl }),
    ...(binding == null ? {} : { externalAccountBinding: binding }),
  });
}

async function register(settings: AcmeSettings): Promise<string> {
  const { email, onAccount } = settings;
  const client = await open(settings, null);
  const contact = email === undefined ? {} : { contact: [`mailto:${email}`] };
  const account = { termsOfServiceAgreed: true, ...contact };
  await client.createAccount(account).catch((error: unknown) => {
    // The library then updates an account that exists, and an authority refuses an update without a contact.
    const isRefused = error instanceof AcmeError && error.type === 'malformed';
    if (!isRefused || email !== undefined) throw error;
  });
  const url = client.getAccountUrl();
  await onAccount(url);
  return url;
}

async function issue(
  client: Client,
  settings: AcmeSettings,
  { host, signal, onOrder }: { host: string; signal: AbortSignal; onOrder: () => void },
): Promise<Issued> {
  const { crypto } = await acmeLibrary(settings);
  // Reads the authority's directory first: if the authority can't be reached, no order is counted.
  await client.getTermsOfServiceUrl();
  onOrder();
  const deadline = performance.now() + ORDER_MS;
  let order = await client.createOrder({ identifiers: [{ type: 'dns', value: host }] });
  if (order.status === 'pending') {
    // An authorization that is valid from an earlier order needs no challenge.
    const open = (await client.getAuthorizations(order)).filter(({ status }) => status === 'pending');
    await Promise.all(open.map((authorization) => complete(client, authorization)));
    order = await settled(client, order, { signal, deadline });
  }
  const key = (await crypto.createPrivateEcdsaKey('P-256')).toString();
  if (order.status === 'ready') {
    const [, csr] = await crypto.createCsr({ altNames: [host] }, key);
    order = await settled(client, await client.finalizeOrder(order, csr), { signal, deadline });
  }
  if (order.status !== 'valid') throw await refusal(client, order);
  return { chain: await client.getCertificate(order), key };
}

async function complete(client: Client, { challenges, identifier }: Authorization): Promise<void> {
  const challenge = challenges.find(({ type }) => type === 'http-01');
  if (challenge === undefined) {
    throw new AcmeError('unusable', `the authority offers no http-01 challenge for ${identifier.value}`);
  }
  await client.completeChallenge(challenge);
}

/** Waits until the authority has processed the order. The library's own waiting can't be aborted. */
async function settled(
  client: Client,
  order: Order,
  { signal, deadline }: { signal: AbortSignal; deadline: number },
): Promise<Order> {
  let now = order;
  for (let pause = FIRST_POLL_MS; ; pause = Math.min(2 * pause, LONGEST_POLL_MS)) {
    if (now.status !== 'pending' && now.status !== 'processing') return now;
    if (performance.now() > deadline) {
      throw new AcmeError('timeout', `the authority is still busy with the order after ${ORDER_MS / 1000} s`);
    }
    await wait(pause, undefined, { signal });
    now = await client.getOrder(order);
  }
}

/** Reads why an order is invalid from its challenges, else from the order. */
async function refusal(client: Client, order: Order): Promise<AcmeError> {
  const authorizations = await client.getAuthorizations(order);
  const faults = authorizations.flatMap(({ challenges }) =>
    challenges.map(({ error }) => readProblem(error)),
  );
  const fault = faults.find((problem) => problem !== null) ?? readProblem(order.error);
  return new AcmeError(fault?.type ?? 'unusable', fault?.detail || `the order became ${order.status}`);
}
