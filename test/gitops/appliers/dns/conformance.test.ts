import { dnsApplier } from '../../../../gitops/appliers/dns/applier.ts';
import { cloudflareDns } from '../../../../gitops/appliers/dns/cloudflare.ts';
import { EMULATOR_ZONE } from '../../../support/cloudflare/emulator.ts';
import { cloudflareWorld } from '../../../support/cloudflare/world.ts';
import { applierConformance, CONFORMANCE_IDENTITY } from '../conformance.ts';

applierConformance(
  'DNS at Cloudflare',
  async () => {
    const { emulator, client, breakObserve, close } = await cloudflareWorld();
    const records = `/zones/${emulator.zone.id}/dns_records`;
    return {
      applier: dnsApplier({
        provider: cloudflareDns({ client, zoneId: emulator.zone.id }),
        identity: CONFORMANCE_IDENTITY,
        zone: EMULATOR_ZONE,
        hostAddress: '198.51.100.4',
      }),
      async plantForeign({ spec: { name } }) {
        const { json } = await emulator.call('POST', records, {
          type: 'CNAME',
          name,
          content: 'elsewhere.example',
        });
        return async () => (await emulator.call('GET', `${records}/${json.result.id}`)).json;
      },
      breakObserve,
      close,
    };
  },
  {
    change: (manifest) => ({
      ...manifest,
      hostnames: { ...manifest.hostnames, origin: 'acme-shop-moved.example.net' },
    }),
  },
);
