import { createHmac } from 'node:crypto';

/** What the path of a site's policy script begins with. */
export type PolicyToken = (manifest: { readonly client: string; readonly site: string }) => string;

/**
 * Derives the tokens from a secret, and stores nothing: each replica of a provisioner has the same ones. A token doesn't
 * depend on the script, so a tag server that restarts during a change gets the new script at the old URL. 32 hex
 * digits, which are 128 bits.
 */
export function policyTokens(secret: string): PolicyToken {
  return ({ client, site }) =>
    createHmac('sha256', secret)
      .update(`tagyard policy scripts: path ${client} ${site}`)
      .digest('hex')
      .slice(0, 32);
}
