import { RetryableError } from '../../base/errors.ts';
import { CommandError, type CommandOptions, runCommand } from './command.ts';
import { rfc2136Error } from './rfc2136-errors.ts';

export interface Rfc2136Options {
  /** The zone's primary. */
  readonly server: { readonly host: string; readonly port: number };
  readonly zone: string;
  /** A file that `writeTsigKey` has written. */
  readonly keyFile: string;
  /** Timeout of the server's answer, in seconds; a whole transfer may take six times as long. */
  readonly silenceSeconds?: number;
}

/** A record of a transfer in zone file syntax: names end in a dot, `data` is quoted if necessary. */
export interface ZoneRecord {
  readonly name: string;
  /** Seconds. */
  readonly ttl: number;
  readonly type: string;
  readonly data: string;
}

/**
 * A zone at its primary. Both methods throw `RetryableError`, `TerminalError` or, if the server refuses,
 * `UpdateRefusal`.
 */
export interface Rfc2136Client {
  /** The whole zone in one call. */
  transfer(signal: AbortSignal): Promise<readonly ZoneRecord[]>;
  /** Sends one update message, which is atomic; `commands` are lines of `knsupdate`. */
  update(commands: readonly string[], signal: AbortSignal): Promise<void>;
}

/** Room for the zone of 100,000 sites. */
const MAX_TRANSFER = 100_000_000;

/** DNS UPDATE (RFC 2136) and AXFR (RFC 5936), both with TSIG (RFC 8945) over TCP, by the clients of Knot. */
export function rfc2136Client(options: Rfc2136Options): Rfc2136Client {
  const { server, zone, keyFile, silenceSeconds = 10 } = options;
  const run = async (file: string, args: readonly string[], limits: CommandOptions) => {
    try {
      return (await runCommand(file, args, { timeoutMs: 6_000 * silenceSeconds, ...limits })).stdout;
    } catch (error) {
      throw error instanceof CommandError ? rfc2136Error(error) : error;
    }
  };
  return {
    async transfer(signal) {
      const args = [`@${server.host}`, '-p', `${server.port}`, '-k', keyFile, '-q', zone, '-t', 'AXFR'];
      const display = ['+noall', '+answer', '+noidn', '+retry=0', `+timeout=${silenceSeconds}`];
      return readTransfer(await run('kdig', [...args, ...display], { maxOutput: MAX_TRANSFER, signal }));
    },
    async update(commands, signal) {
      const input = [`server ${server.host} ${server.port}`, `zone ${zone}.`, ...commands, 'send', ''];
      const args = ['-v', '-k', keyFile, '-t', `${silenceSeconds}`];
      await run('knsupdate', args, { input: input.join('\n'), signal });
    },
  };
}

const LINE = /^(\S+)\s+(\d+)\s+IN\s+(\S+)\s+(.*)$/;

/** A transfer begins and ends with the zone's SOA record (RFC 5936 2.2); without the last one it is truncated. */
export function readTransfer(text: string): ZoneRecord[] {
  const records = text.split('\n').flatMap((line) => {
    const [, name, ttl, type, data] = LINE.exec(line) ?? [];
    if (name === undefined || type === undefined || data === undefined) return [];
    return [{ name, ttl: Number(ttl), type, data }];
  });
  if (records.length < 2 || records[0]?.type !== 'SOA' || records.at(-1)?.type !== 'SOA') {
    throw new RetryableError('the DNS server cut the transfer of the zone short');
  }
  return records.slice(0, -1);
}
