import { Code } from '../../../parts/marks.tsx';

interface DnsRecord {
  readonly type: string;
  readonly name: string;
  readonly value: string;
}

/** DNS records to set, one a line, copied together. */
export function Records({ records }: { records: readonly DnsRecord[] }) {
  if (records.length === 0) return null;
  const text = records.map(({ type, name, value }) => `${name}. ${type} ${value}`).join('\n');
  return <Code text={text} what="DNS records" />;
}
