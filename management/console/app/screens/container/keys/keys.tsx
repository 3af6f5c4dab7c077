import type { Versioned } from '../../../data/containers.ts';
import { Section } from '../../../parts/page.tsx';
import { ConfigForm } from './config.tsx';
import { LoaderTokenPart } from './loader-tokens.tsx';
import { ServiceAccount } from './service-account.tsx';

/** Loader tokens, the container configuration and the service account: what is replaced from time to time. */
export function KeysSection({ versioned }: { versioned: Versioned }) {
  return (
    <Section id="keys" title="Tokens and configuration">
      <LoaderTokenPart versioned={versioned} />
      <ServiceAccount versioned={versioned} />
      <ConfigForm versioned={versioned} />
    </Section>
  );
}
