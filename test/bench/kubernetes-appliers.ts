import { openCluster } from '../../gitops/kubernetes/applier/cluster.ts';
import { kubernetesSettings } from '../../gitops/kubernetes/applier/settings.ts';
import { SiteRuns } from '../support/kubernetes/site-runs.ts';
import { serveChild } from './kubernetes-child.ts';
import { ADMITTED, IDENTITY, ORDINAL, siteOf } from './kubernetes-sites.ts';

/** The process that is measured: the appliers of a cluster, as the provisioner's loop calls them. */
await serveChild(async ({ kubeconfig, sites: count }) => {
  const sites = Array.from({ length: count }, (_, number) => siteOf(number));
  let runs: SiteRuns | null = null;
  const open = async () => {
    runs ??= new SiteRuns(
      await openCluster(
        kubernetesSettings.parse({ KUBECONFIG: kubeconfig, KUBERNETES_ADMIT_CIDRS: ADMITTED }),
        {
          identity: IDENTITY,
          log: { info() {}, warn: (fields: object, text: string) => console.error(text, fields) },
          ordinal: async () => ORDINAL,
          gateway: null,
          originPort: 443,
          edition: () => '0',
        },
      ),
    );
    return runs;
  };
  const run = async () => {
    const { errors } = await (await open()).run(...sites);
    if (errors.length > 0)
      throw new AggregateError(errors, `${errors.length} failures: ${errors[0]?.message}`);
    return errors.length;
  };
  return {
    /** Makes all sites run; resolves when they do. */
    run,
    /** A full observation and plan; the number of changes. */
    pass: async () => (await (await open()).plan(...sites)).changes.length,
    /** Changes the configuration of one site, and makes it run. */
    async change(number) {
      sites[number] = siteOf(number, '2');
      return await run();
    },
  };
});
