import { RetryableError } from '../base/errors.ts';
import { CommandError, type CommandOptions, runCommand } from './command.ts';
import { rfc2136Error } from './rfc2136-errors.ts';

export interface Rfc2136Options {
  /** The zone's primary. */
  readonly server: { readonly host: string; readonly port: number };
  readonly zone: string;
  /** A file of `writeTsigKey`. */
  readonly keyFile: string;
  /** How long the server may be silent, in seconds; a whole transfer may take six times that. */
  readonly silenceSeconds?: number;
}

/** A record as a transfer has it, in the words of a zone file: names end in a dot, `data` is quoted where it must be. */
export interface ZoneRecord {
  readonly name: string;
  /** Seconds. */
  readonly ttl: number;
  readonly type: string;
  readonly data: string;
}

/** A zone at its primary. Both methods throw `RetryableError`, `TerminalError` or, where the server says no, `UpdateRefusal`. */
export interface Rfc2136Client {
  /** The whole zone in one call. */
  transfer(signal: AbortSignal): Promise<readonly ZoneRecord[]>;
  /** One update message, carried out wholly or not at all; `commands` are lines of `knsupdate`. */
  update(commands: readonly string[], signal: AbortSignal): Promise<void>;
}

/** Room for the zone of 100,000 sites. */
const MAX_TRANSFER = 100_000_000;

/** DNS UPDATE (RFC 2136) and AXFR (RFC 5936), both with TSIG (RFC 8945) and over TCP, by Knot's own clients. */
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

/** A transfer opens and closes with the zone's SOA record (RFC 5936 2.2): without the second it was cut short. */
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
