import type { Versioned } from '../../../data/containers.ts';
import { Section } from '../../../parts/page.tsx';
import { UploadedCertificate } from './certificate.tsx';
import { ConfigForm } from './config.tsx';
import { LoaderTokenPart } from './loader-tokens.tsx';
import { ServiceAccount } from './service-account.tsx';

/** What is replaced from time to time: tokens, the configuration, the service account, an uploaded certificate. */
export function KeysSection({ versioned }: { versioned: Versioned }) {
  return (
    <Section id="keys" title="Tokens and configuration">
      <LoaderTokenPart versioned={versioned} />
      <ServiceAccount versioned={versioned} />
      <UploadedCertificate versioned={versioned} />
      <ConfigForm versioned={versioned} />
    </Section>
  );
}
