import { dnsApplier } from '../../../gitops/appliers/dns/applier.ts';
import { rfc2136Dns } from '../../../gitops/appliers/dns/rfc2136.ts';
import { rfc2136Client } from '../../../gitops/clients/rfc2136.ts';
import { applierConformance, CONFORMANCE_IDENTITY } from '../../gitops/appliers/conformance.ts';
import { describeWith } from '../../support/components.ts';
import { KNOT_ZONE, startKnot } from '../../support/dns/knot.ts';

describeWith('knot', 'a zone at Knot', () => {
  applierConformance(
    'DNS by RFC 2136',
    async () => {
      const knot = await startKnot();
      const server = { host: '127.0.0.1', port: knot.port };
      const client = rfc2136Client({ server, zone: KNOT_ZONE, keyFile: knot.keyFile('tagyard') });
      return {
        applier: dnsApplier({
          provider: rfc2136Dns({ client, zone: KNOT_ZONE }),
          identity: CONFORMANCE_IDENTITY,
          zone: KNOT_ZONE,
          hostAddress: '198.51.100.4',
          edgeTarget: '{host}.cdn.example',
        }),
        async plantForeign({ spec: { name } }) {
          const label = name.slice(0, -KNOT_ZONE.length - 1);
          await knot.update(`add ${label} 300 A 203.0.113.9`);
          return async () => await knot.read(label, 'A');
        },
        async breakObserve() {
          await knot.stop();
          return () => knot.start();
        },
        close: () => knot.close(),
      };
    },
    {
      change: (manifest) => ({
        ...manifest,
        hostnames: { ...manifest.hostnames, origin: 'acme-shop-moved.example.net' },
      }),
    },
  );
});
