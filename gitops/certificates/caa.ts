/** The CAA records that apply to a name, and whose they are: its own, or those of the next parent that has some. */
interface CaaAnswer {
  readonly owner: string;
  readonly issue: readonly string[];
}

/** What of an authority CAA records name. */
interface Issuer {
  /** Its domains in CAA records; empty if it doesn't say. */
  readonly identities: readonly string[];
  readonly method: 'http-01' | 'dns-01';
}

/** Why an authority must refuse a name because of its CAA records (RFC 8659, RFC 8657), and the record to set. */
export function caaFault({ owner, issue }: CaaAnswer, { identities, method }: Issuer): string | null {
  if (issue.length === 0) return null;
  const allowed = issue.map(readIssue);
  const named = allowed.filter(({ domain }) => domain !== '');
  // Without the authority's own word, a named domain may be its.
  const isOurs = (domain: string) => identities.length === 0 || identities.includes(domain);
  const ours = named.filter(({ domain }) => isOurs(domain));
  if (ours.some(({ methods }) => methods === null || methods.includes(method))) return null;
  const others = [...new Set(named.map(({ domain }) => domain))].join(', ');
  const says =
    ours.length > 0
      ? `don’t let it validate by ${method}`
      : `let ${others === '' ? 'no authority' : `only ${others}`} issue certificates`;
  const ca = identities[0] ?? ours[0]?.domain ?? 'the authority’s domain';
  return `the CAA records of ${owner} ${says}: add the record ${owner} CAA 0 issue "${ca}"`;
}

/** `ca.example; validationmethods=http-01,dns-01` */
function readIssue(value: string): { domain: string; methods: string[] | null } {
  const [domain = '', ...parameters] = value.split(';').map((part) => part.trim().toLowerCase());
  const methods = parameters.find((part) => part.startsWith('validationmethods='));
  return { domain, methods: methods?.slice(methods.indexOf('=') + 1).split(',') ?? null };
}
