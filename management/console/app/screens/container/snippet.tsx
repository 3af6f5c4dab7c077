import { useState } from 'preact/hooks';
import { shownHost } from '../../../../../base/host-name.ts';
import type { Container } from '../../data/containers.ts';
import { Code } from '../../parts/marks.tsx';
import { Section } from '../../parts/page.tsx';

type Domain = Container['domains'][number];

/** What to paste into the pages of each domain. */
export function SnippetSection({ container: { domains } }: { container: Container }) {
  const [chosen, choose] = useState(domains[0]?.domain);
  const domain = domains.find((one) => one.domain === chosen) ?? domains[0];
  return (
    <Section
      id="snippet"
      title="Snippet"
      aside={
        domains.length > 1 && (
          <select
            aria-label="Domain"
            value={domain?.domain}
            onChange={({ currentTarget }) => choose(currentTarget.value)}
          >
            {domains.map((one) => (
              <option key={one.domain} value={one.domain}>
                {shownHost(one.domain)}
              </option>
            ))}
          </select>
        )
      }
    >
      {domain && <OfDomain domain={domain} />}
    </Section>
  );
}

function OfDomain({ domain }: { domain: Domain }) {
  return (
    <>
      <p>
        Paste it as high as possible into the <code>&lt;head&gt;</code> of every page of{' '}
        <strong>{shownHost(domain.domain)}</strong>, in place of Google’s own snippet of{' '}
        <code>{domain.webTagId}</code>.
      </p>
      <Code text={domain.snippet} what={`snippet of ${shownHost(domain.domain)}`} />
      {domain.contentSecurityPolicy !== '' && (
        <details>
          <summary>Content security policy</summary>
          <p>If the pages have a policy, it must allow these sources.</p>
          <Code text={domain.contentSecurityPolicy} what="sources of the policy" />
        </details>
      )}
    </>
  );
}
