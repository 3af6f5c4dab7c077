import { adblockItpDetectionTexts } from './adblock_itp_detection/texts.ts';
import { anonymizerTexts } from './anonymizer/texts.ts';
import { blockAddressesTexts } from './block_addresses/texts.ts';
import { botGuardTexts } from './bot_guard/texts.ts';
import { consentGateTexts } from './consent_gate/texts.ts';
import { cookieRestorationTexts } from './cookie_restoration/texts.ts';
import { customLoaderTexts } from './custom_loader/texts.ts';
import type { MODULES } from './document.ts';
import { geoHeadersTexts } from './geo_headers/texts.ts';
import { googleTagGatewayTexts } from './google_tag_gateway/texts.ts';
import { multiDomainTexts } from './multi_domain/texts.ts';
import { serverProxyTexts } from './server_proxy/texts.ts';
import type { PluginTexts } from './texts.ts';
import { userAgentHeadersTexts } from './user_agent_headers/texts.ts';
import { userIdTexts } from './user_id/texts.ts';

/** The texts of each plugin, by its name. */
export const TEXTS: Readonly<Partial<Record<keyof typeof MODULES, PluginTexts>>> = {
  server_proxy: serverProxyTexts,
  custom_loader: customLoaderTexts,
  adblock_itp_detection: adblockItpDetectionTexts,
  cookie_restoration: cookieRestorationTexts,
  multi_domain: multiDomainTexts,
  geo_headers: geoHeadersTexts,
  user_agent_headers: userAgentHeadersTexts,
  bot_guard: botGuardTexts,
  user_id: userIdTexts,
  anonymizer: anonymizerTexts,
  consent_gate: consentGateTexts,
  block_addresses: blockAddressesTexts,
  google_tag_gateway: googleTagGatewayTexts,
};
